"""What the language models of several examples share."""
