"""What a class trip costs: python scripts/budget.py --pupils 24 --nights 3"""

import argparse
import csv
import math

parser = argparse.ArgumentParser()
parser.add_argument("--pupils", type=int, required=True)
parser.add_argument("--nights", type=int, required=True)
trip = parser.parse_args()

people = trip.pupils + max(2, math.ceil(trip.pupils / 12))
times = {"trip": 1, "person": people, "night": people * trip.nights}
with open("assets/prices.csv") as file:
    total = sum(int(row["euros"]) * times[row["per"]] for row in csv.DictReader(file))

print(f"{people} people, {total} euros, {math.ceil(total / trip.pupils)} euros for each pupil")
