"""A settings file with one of everything that YAML has and a person may write."""

SETTINGS = """\
# A team
name: vision
members: {admin: [vision-leads], member: [vision]}
quota:
  h100: 64
  "on": 1.5
jobs:
- name: a
  command: [torchrun, "12:30:45"]
- name: b
  env: &env
    HOME: /home
    EMPTY: ~
- name: c
  env: *env
  <<: {image: a}
script: |
  set -e
  echo tab
"""
