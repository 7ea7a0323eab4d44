"""Do attention and the usual explainers agree, and which of them is faithful or finds what people marked?"""
