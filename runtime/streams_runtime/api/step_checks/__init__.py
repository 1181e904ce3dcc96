"""Checks of one kind of step each: does it fit what flows into it?"""
