"""How much of what attention shows comes from the word vectors that training starts from?"""
