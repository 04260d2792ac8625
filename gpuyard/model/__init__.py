"""What a platform is made of, as typed data: environments, pools, machines, fabrics, teams, jobs."""
