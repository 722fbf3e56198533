"""Record and replay: an answer that was recorded is not requested again."""
