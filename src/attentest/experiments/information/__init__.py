"""Do the words that get more attention tell more about the output?"""
