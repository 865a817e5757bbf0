"""State on disk: the state directory, the journal, conversations and retained results."""
