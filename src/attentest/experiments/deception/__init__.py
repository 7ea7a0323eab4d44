"""Can a model attend elsewhere and go on using the words it must not attend to?"""
