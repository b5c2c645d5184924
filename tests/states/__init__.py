"""Small data folders of earlier versions, and the script that makes one."""
