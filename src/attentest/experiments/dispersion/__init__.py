"""Is a hidden state about one word, and does attention rank states or words?"""
