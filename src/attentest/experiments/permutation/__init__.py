"""Does it matter which token has which weight?"""
