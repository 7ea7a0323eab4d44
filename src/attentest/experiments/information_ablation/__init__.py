"""What becomes of the agreement of attention and information in models that were trained otherwise?"""
