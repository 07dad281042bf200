"""From nodes to a cited answer: numbered context, extraction, citations."""
