"""What requests do with messages, and what they leave open between them."""
