"""What a person chose and did, between one run of the script and the next, and what Streamlit keeps of it."""
