"""What every column of a package's tables means: column | meaning | unit | when it is empty.

Unit and the last part may be left out: no unit, never empty. Types come from the tables themselves.
"""

_CALL = """
request_sha256 | digest of what was asked
sent | settings of the call, as JSON; never a text
raw | what the model answered, verbatim
status | how the call ended; only ok makes ratings
reason | why it did not end well | | nothing to say
tokens_in | what was read | tokens | not reported
tokens_out | what was written | tokens | not reported
tokens_cached | part of tokens_in that was read before | tokens | not reported
tokens_reasoning | part of tokens_out that was not shown | tokens | not reported
usd | what it cost | US dollars | no price known: not the same as free
price_source | where the price comes from | | no price known
latency_seconds | until the answer was there | seconds
request_id | the provider's name of the call | | not given
returned_model | the model that says it answered | | not given
at | when | UTC
"""
_MATERIAL = {
    "rubric": """
sha256 | digest of the rubric's text; what ratings refer to
name | its name
version | its version
body | the rubric as JSON: scale, criteria, questions, anchors, prompt
added | when it came into the study | UTC
""",
    "benchmark": """
name | the set of instances
category | place in the taxonomy | | not placed
subcategory | place in the taxonomy | | not placed
rubric_sha256 | the rubric it is rated on
""",
    "instance": """
id | key in this study
benchmark | its benchmark
instance_id | its name, unique in the benchmark
context | the material: dialogue, chart, abstract | | none
prompt | the task | | none
reference | a gold answer | | none is given
checklist | what an answer must contain | | none is given
""",
    "response": """
id | key in this study
response_id | its name, unique in the study
instance | key of what it answers
text | the text as raters saw it, names of its author masked
masked | 1 where something in it is masked
batch | the act that brought it; its event has a digest | | brought by no recorded act
""",
    "subgroup": """
id | key in this study
response | key of the response
name | what tells responses apart, such as language; from a column group:NAME
value | to which of them the response belongs
batch | the act that brought it; its event has a digest | | brought by no recorded act
""",
    "authorship": """
response | key of the response
model | who wrote it; never shown to a rater
original | the whole text | | nothing in it is masked
""",
    "mask": """
id | key in this study
response | key of the response
start | first character that is masked | characters
end | the one after the last | characters
text | what is masked
at | when | UTC
""",
}
_PEOPLE = {
    "rater": """
id | key in this study
kind | clinician, juror or metric
handle | the name used everywhere, unique in the study
family | a juror's model family | | not a juror, or not known
pseudonym | a person's name in reports | | none
specialty | a person's specialty | | not said
simulated | 1 where nobody stands behind it
profile | what makes a juror that juror: provider, model, settings
""",
    "assignment": """
id | key in this study
code | the random name under which the response reaches a browser
rater | key of the clinician
response | key of the response
position | place in this clinician's order
pass_ | 0, or 1 for a hidden repeat
state | open, done, unrated (could not be rated) or recused
draft | what is entered and not submitted, as JSON
draft_seq | number of the newest draft
seconds_active | time at work on it, idle time left out | seconds
opened_at | first shown | UTC | never opened
reference_opened_at | reference first opened | UTC | never opened
done_at | last submitted | UTC | not submitted
revision | submissions so far
submitted_seq | number of the draft last submitted
previous | composite this clinician gave just before | points of the scale | none before, or not complete
""",
    "rating": """
id | key in this study; of several scores for one thing the highest counts
response | key of the response
rater | key of the rater
criterion | what is rated; for a metric, its figure
score | the score; a row exists only where one was given | points of the scale
rubric_sha256 | the rubric it was made on | | a metric's
pass_ | 0, or 1 for a hidden repeat
replicate | number of a juror's repeated answer, from 0
comment | the rater's words | | none
at | when | UTC
batch | the act that wrote it; its event has a digest | | written by no recorded act
""",
    "remark": """
id | key in this study
assignment | key of the assignment
kind | the flag or act
text | the clinician's words | | none
revision | submissions before this remark
at | when | UTC
batch | the act that wrote it | | written by no recorded act
""",
    "span": """
id | key in this study
assignment | key of the assignment
criterion | the criterion it belongs to
start | first marked character of the text as shown | characters
end | the one after the last | characters
text | what is marked
error | the kind of error seen in it
note | the clinician's words | | none
revision | submissions before this mark; those of the newest count
at | when | UTC
batch | the act that wrote it | | written by no recorded act
""",
    "expert": """
id | key in this study
response | key of a training response
criterion | what is rated
score | the experts' score | points of the scale
why | their reason | | none
""",
    "drill": """
id | key in this study
rater | key of the clinician in training
response | key of the training response
round | number of the round, from 0
scores | the answers by criterion, as JSON | points of the scale
at | when | UTC
""",
}
_RECORD = {
    "attempt": f"""
id | key in this study
rater | key of the juror
response | key of the response
rubric_sha256 | the rubric it was asked on
replicate | number of the repeated answer, from 0
number | number of the call for this answer; 0 where it was made elsewhere
{_CALL.strip()}
""",
    "reference_check": f"""
id | key in this study
instance | key of the instance
rater | key of the juror
absent | 1 where it names facts that the source does not hold | | no answer that can be read
facts | those facts, as JSON
number | number of the call
{_CALL.strip()}
""",
    "composition": """
key | digest of what makes it this comparison
jurors | the jury, as JSON
needed | jurors a response needs
benchmark | or combined
instances | which instances were kept | | all
criterion | the criterion | | the mean of all
method | paper or published
simulated | 1 where a juror was simulated
compared | what it was compared with, as JSON
icc | ICC(C,2) at the last look | | undefined
n_responses | what that rests on | responses
fingerprint | digest of the ratings it was computed from
times | looks so far
first_at | first look | UTC
last_at | last look | UTC
""",
    "report": """
id | its number
at | when it was frozen | UTC
fingerprint | digest of the ratings it was computed from
body | the calibration as JSON
""",
    "setting": """
key | what was decided
value | how | | empty text
""",
    "event": """
id | its number
at | when | UTC
actor | who
action | what was done
detail | particulars as JSON, with digests of the rows written
previous | SHA-256 of the event before; zeros for the first
sha256 | SHA-256 over at, actor, action, detail and previous
""",
}
TABLES = _MATERIAL | _PEOPLE | _RECORD
