"""Custom elements drawn on canvases: one folder each, fed by one packed payload."""
