"""The daemon of a runner host: takes jobs from queues, works at them in slots, sends events."""
