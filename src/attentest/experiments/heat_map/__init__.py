"""What do other attentions look like on one text?"""
