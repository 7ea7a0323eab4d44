"""Does it matter whether attention was learnt, or would a bag of words' do?"""
