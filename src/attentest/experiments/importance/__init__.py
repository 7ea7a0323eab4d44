"""Does attention agree with what moves the output?"""
