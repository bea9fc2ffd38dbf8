"""Translate what Lua reports of chats into neutral terms. No I/O in this folder."""
