"""State on disk: the state folder, the journal, conversations and retained results."""
