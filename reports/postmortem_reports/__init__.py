"""The result becomes HTML, Markdown, JSON, text, a trace: functions of the result that compute nothing."""
