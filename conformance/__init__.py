"""The requirement catalogue, the stated gaps, and the report over both."""
