"""How many cars will pass in the next hour?"""
