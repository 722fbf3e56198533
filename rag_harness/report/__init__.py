"""What people read: summaries made from result rows alone."""
