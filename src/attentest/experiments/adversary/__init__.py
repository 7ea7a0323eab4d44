"""Is there another attention, far from the model's own, under which it answers the same?"""
