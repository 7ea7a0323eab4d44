"""Does the task need attention at all?"""
