"""Can somebody who hears a few words of a text say what the classifier said?"""
