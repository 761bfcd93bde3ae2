# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni bench speech` has said: for the times, and for a recogniser to read back."""

from __future__ import annotations

#: About 1, 4 and 12 seconds of speech.
TIMED = {
    "phrase": "Yes, I can do that.",
    "sentence": "I will pick up the red block from the table and then put it down on the blue pad.",
    "paragraph": (
        "I can see four blocks on the table in front of me. The red one is closest to the gripper, so "
        "I will begin with that. Then I will move the blue one out of the way, because it stands "
        "between the arm and the pad. Please keep your hands away from the arm until I am done."
    ),
}

#: Plain sentences: every word is to be understood.
PLAIN = (
    "I will pick up the red block from the table.",
    "Please keep your hands away from the arm.",
    "The green block is on the left side of the pad.",
    "I could not find the yellow block, so I will look again.",
    "The task is done and the arm is back at its home position.",
    "My battery is almost empty and I need to charge.",
    "Would you like me to open the door for you?",
    "Something is blocking the way to the kitchen.",
    "I am going to put the cup down next to the plate.",
    "Thank you very much for your help today.",
)

#: With numbers, abbreviations and names, and the words that are to be heard.
WRITTEN = (
    ("It costs $3.50.", "it costs three dollars and fifty cents"),
    ("The arm weighs 4.5 kg.", "the arm weighs four point five kilograms"),
    ("Move 25 cm to the left.", "move twenty five centimeters to the left"),
    ("The temperature is 21\u00b0C.", "the temperature is twenty one degrees celsius"),
    ("The battery is at 85%.", "the battery is at eighty five percent"),
    ("Dr. Smith will see you at 3:15 p.m.", "doctor smith will see you at three fifteen p m"),
    ("Mr. Johnson lives in St. Louis.", "mister johnson lives in saint louis"),
    ("The meeting is on Nov. 3rd.", "the meeting is on november third"),
    ("She was born in 1984.", "she was born in nineteen eighty four"),
    ("There are 1,250 screws in the box.",
     "there are one thousand two hundred fifty screws in the box"),
    ("Take the 2nd door on the right.", "take the second door on the right"),
    ("I need about 10 minutes.", "i need about ten minutes"),
    ("The speed limit is 30 mph.", "the speed limit is thirty miles per hour"),
    ("Please call 555-1234.", "please call five five five one two three four"),
    ("Only 1/2 of the parts are here.", "only one half of the parts are here"),
    ("The motor runs at 12 V.", "the motor runs at twelve volts"),
    ("Use tools, e.g. a hammer.", "use tools for example a hammer"),
    ("Plug in the USB cable.", "plug in the u s b cable"),
    ("The GPS signal is weak.", "the g p s signal is weak"),
    ("NASA launched it in 2021.", "nasa launched it in twenty twenty one"),
    ("Turn the wheel by 90\u00b0.", "turn the wheel by ninety degrees"),
    ("The box is 3 x 4 meters.", "the box is three by four meters"),
    ("Wait for 5 s and try again.", "wait for five seconds and try again"),
    ("It happened on 2024-11-30.", "it happened on november thirtieth twenty twenty four"),
    ("My name is Robert Miller.", "my name is robert miller"),
    ("Anna and David are in the kitchen.", "anna and david are in the kitchen"),
    ("We fly from Boston to Chicago.", "we fly from boston to chicago"),
    ("Prof. Wilson teaches in Berlin.", "professor wilson teaches in berlin"),
    ("Mrs. Taylor has 2 dogs and 3 cats.", "missus taylor has two dogs and three cats"),
    ("The price fell from $20 to $15.", "the price fell from twenty dollars to fifteen dollars"),
    ("The room is 5 m long & 4 m wide.", "the room is five meters long and four meters wide"),
    ("Open the door at 7 a.m.", "open the door at seven a m"),
    ("Step 1 of 12 is done.", "step one of twelve is done"),
    ("The answer is -7.", "the answer is minus seven"),
    ("It is 100 times larger.", "it is one hundred times larger"),
    ("London is 343 km from Paris.",
     "london is three hundred forty three kilometers from paris"),
    ("Write to joe@example.com.", "write to joe at example dot com"),
    ("See www.example.org for more.", "see example dot org for more"),
    ("The file is 250 MB large.", "the file is two hundred fifty megabytes large"),
    ("The CPU runs at 2.4 GHz.", "the c p u runs at two point four gigahertz"),
    ("Elizabeth turned 40 in May.", "elizabeth turned forty in may"),
    ("The 1st train leaves at 6:05.", "the first train leaves at six oh five"),
    ("Add 3/4 of a cup of milk.", "add three quarters of a cup of milk"),
    ("I have $1,000 in the bank.", "i have one thousand dollars in the bank"),
    ("The FBI called Mr. Brown.", "the f b i called mister brown"),
    ("Read pages 10-15.", "read pages ten to fifteen"),
    ("The torque is 5 Nm.", "the torque is five newton meters"),
    ("Michael drove 60 miles on Friday.", "michael drove sixty miles on friday"),
    ("That is approx. 30% of it.", "that is approximately thirty percent of it"),
    ("President Lincoln was born in 1809.",
     "president lincoln was born in eighteen oh nine"),
)
