"""The communication game: messages, laypeople, and an explainer trained with its layperson."""
