"""The search for the tightest certificate, and everything that asks for one."""
