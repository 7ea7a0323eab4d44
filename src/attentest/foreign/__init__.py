"""Models made elsewhere behind the seam: Hugging Face transformers and adapters of PyTorch modules."""
