"""Are a model's weights good for anything outside the model?"""
