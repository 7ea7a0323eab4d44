"""How far does each output move under weights that attention did not choose?"""
