"""Running a command under a memory budget, and again under a smaller one when it died of memory."""
