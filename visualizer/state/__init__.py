"""A person's choices and acts, between one run of the script and the next, and what Streamlit keeps of them."""
