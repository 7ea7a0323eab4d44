"""Can a whole model be trained to answer the same while it attends elsewhere?"""
