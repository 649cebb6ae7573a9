"""What cells define: agents, teams, tools, workflows and their names."""
