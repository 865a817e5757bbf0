"""A2A's messages, tasks, cards and errors, in versions 1.0 and 0.3 (https://a2a-protocol.org). Pure."""
