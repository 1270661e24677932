"""What is read in the text of an answer: JSON objects with their places, and the words around scores."""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

FIRST_KEY = re.compile(
    r"""\{\s*(?:"([^"\\]{1,64})"|['`\u2018\u201c]?(\w{1,64})['`\u2019\u201d]?\s*:)"""
)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BEGINS = re.compile(r'\{[ \t\n\r]*["}]')
STRUCTURE = re.compile(rf"{STRING.pattern}|[{{}}]", re.DOTALL)
NAMES = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
OPENS = re.compile(
    rf"\s*(?:<{NAMES}(?:\s[^<>]*)?>|\[THINK(?:ING)?\]|\u25c1think\u25b7"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)<\|message\|>)",
    re.IGNORECASE,
)
CLOSES = re.compile(
    rf"</{NAMES}\s*>|\[/THINK(?:ING)?\]|\u25c1/think\u25b7"
    r"|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)


class Conflicting:
    """Takes the place of a value where an object has its key twice with different values."""


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object in a text, from character `start` to `end`.

    Attributes
    ----------
    value
        The object; for one that breaks off, its first key.
    """

    start: int
    end: int
    value: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A stretch of a text, in characters."""

    start: int
    end: int


def after_reasoning(text: str) -> str:
    """Return the text without the blocks of reasoning that it begins with.

    A block ends at the first closing tag. One that is never closed takes all of the text. A block
    further down stays: a juror that quotes such a tag must not hide its own verdict by it.
    """
    text = text.lstrip("\ufeff \t\r\n")
    at = 0
    while opening := OPENS.match(text, at):
        closing = CLOSES.search(text, opening.end())
        at = closing.end() if closing else len(text)
    return text[at:]


def objects(text: str) -> Iterator[dict[str, Any] | str]:
    """Yield the values of `find_objects`, without their places."""
    return (located.value for located in find_objects(text))


def find_objects(text: str) -> Iterator[FoundObject]:
    """Yield the whole text if it is one object; else the outermost objects in it, in their order.

    What begins as an object but does not end is yielded with its first key.
    """
    whole_text = _load(text.strip())
    if whole_text is not None:
        yield FoundObject(0, len(text), whole_text)
        return
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_pairs, parse_float=_decimal)
    at = text.find("{")
    broken: set[int] = set()
    while at >= 0:
        end = at + 1
        try:
            if at not in broken and BEGINS.match(text, at):
                value, end = decoder.raw_decode(text, at)
                yield FoundObject(at, end, value)
        except RecursionError:
            yield FoundObject(at, len(text), "")
            return
        except ValueError as error:  # not JSON's own: a number too long
            failed = error.pos if isinstance(error, json.JSONDecodeError) else at
            broken.update(_still_open(text, at, failed))
        if end == at + 1 and (key := FIRST_KEY.match(text, at)):
            yield FoundObject(at, end, key[1] or key[2])
        at = text.find("{", end)


def _still_open(text: str, at: int, end: int) -> list[int]:
    """Return where the objects begin that are still open at `end`, where reading one failed."""
    opened: list[int] = []
    for token in STRUCTURE.finditer(text, at, end):
        if token[0] == "{":
            opened.append(token.start())
        elif token[0] == "}" and opened:
            opened.pop()
    return opened


def member_spans(text: str, at: int) -> list[tuple[str, TextSpan]]:
    """Return the keys of the object that begins at `at`, and where their values stand.

    For an object that `find_objects` has yielded: it can be read.
    """
    decoder = json.JSONDecoder(strict=False, parse_float=_decimal)
    spans, at = [], _skip(text, at + 1)
    while key := STRING.match(text, at):
        start = _skip(text, _skip(text, key.end()) + 1)
        end = decoder.raw_decode(text, start)[1]
        spans.append((json.loads(key[0], strict=False), TextSpan(start, end)))
        at = _skip(text, _skip(text, end) + 1)
    return spans


def _skip(text: str, at: int) -> int:
    """Return the position of the next character that is not JSON white space."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def _load(text: str) -> dict[str, Any] | None:
    """Return the object a text is, or None where it is none."""
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_pairs, parse_float=_decimal)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _decimal(text: str) -> Decimal:
    """Return a number exactly as it is written; NaN for one that a Decimal cannot hold."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from its pairs; a key with two different values is `Conflicting`."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        differs = key in members and repr(members[key]) != repr(value)
        members[key] = Conflicting() if differs else value
    return members


ALIKE = str.maketrans(
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0443\u0445\u043a\u043c\u0442\u043d\u0432"
    "\u03b1\u03b5\u03b9\u03bf\u03c1\u03c5\u03ba\u03bd\u0131\u2212\u2013\u2014\u2010\u2011\u2044\u2215",
    "aceijopsyxkmtnbaeiopukvi-----//",
)
UNSEEN = dict.fromkeys([0xAD, 0x180E, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF])
NUMBERS = {
    0: "zero null nul cero",
    1: "eins une uno uma een",
    2: "two zwei deux dos dois duas twee",
    3: "three drei trois tres drie",
    4: "four vier quatre cuatro quattro quatro",
    5: "five funf cinq cinco cinque vijf",
    6: "six sechs seis zes",
    7: "seven sieben sept siete sette sete zeven",
    8: "eight acht huit ocho otto oito",
    9: "nine neun neuf nueve nove negen",
    10: "ten zehn dix diez dieci dez tien",
    20: "twenty zwanzig",
    30: "thirty",
    40: "forty",
    50: "fifty",
    60: "sixty",
    70: "seventy",
    80: "eighty",
    90: "ninety",
    100: "hundred hundert cien cent cem honderd",
}
IN_WORDS = {word: f"{number}" for number, words in NUMBERS.items() for word in words.split()}
WORD = re.compile(r"[^\W\d_]{2,8}")
ONE_AS_NUMBER = re.compile(r"(?<=[aostef] )one(?=\s*(?:[.,;:!)]|$))")
HAN = {
    sign: f"{digit}"
    for digit, sign in enumerate("\u96f6\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d")
}
HAN_POINTS = re.compile(r"(?<=\d)\s*[\u5206\u70b9\u9ede\uc810]")
HAN_SCORE = re.compile(rf"([{''.join(HAN)}])(?=\s*\u5206)")

SCORE_WORD = (
    r"(?:sub)?scor(?:e|es|ed|ing)|ratings?|rated?|marks?|points?|grad(?:e|es|ed)|verdicts?|assess(?:ment|ed)?"
    r"|bewert\w*|punkt\w*|noten?|wertung\w*|urteil\w*|notes?|notation|evalu\w*|verdetto"
    r"|puntuacion\w*|puntaje\w*|punto?s?|califica\w*|punteggi\w*|vot[oi]|valuta\w*|pontu\w*|nota[s]?"
    r"|beoordel\w*|cijfers?|scoort|criteri\w*|kriteri\w*|criteres?|all|alle[ns]?|uberall|tous|toutes|todos|todas|tutti"
)
RATING_VERB = (
    r"give|gives|gave|given|deserves?|merits?|should|make|makes|set|change[ds]?|lower(?:ed)?|raised?|revised?|corrected"
    r"|gebe|vergebe|verdient|sollte|andere|korrigiere|donne|attribue|merite|devrait|doy|merece|deberia"
    r"|assegno|merita|dovrebbe|dou|deveria|geef|verdient|moet"
)
ABOUT = re.compile(rf"\b(?:{SCORE_WORD}|{RATING_VERB})\b")
OVERALL = re.compile(
    r"\b(?:overall|total|mean|average|composite|gesamt\w*|mittel\w*|durchschnitt|moyenne|globale?|promedio|media|totale|gemiddelde?)\b"
)
UNIT = (
    r"(?!\s*(?:[a-z\u00b5]?g|[mcdk]?l|mmol|mmhg|iu|ie|%|\u00b0|[mck]?m|h|hours?|hrs?|days?|weeks?|months?|years?|min\w*|sec\w*"
    r"|times|x|units?|tab(?:let)?s?|doses?|drugs?|medic\w+|errors?|facts?|sentences?|words?|lines?|items?|sections?"
    r"|paragraphs?|reasons?|patients?|tage?n?|stunden?|wochen?|jahre?n?|mal|satze?n?|fehler|jours?|heures?|fois|dias?"
    r"|horas?|giorni|ore|dagen|uur)\b)"
)
NUMBER = re.compile(rf"(?<![\w.,/])[-+]?\d{{1,3}}(?:[.,]\d{{1,4}})?(?!\w|[.,]?\d){UNIT}")
COULD_COUNT = re.compile(rf"(?<!\d)\d{{1,3}}(?!\d){UNIT}|(?<=[aostef] )one\b|\bdue\b(?! to\b)")
DUE = re.compile(r"\bdue\b(?! to\b)")
MINUS = re.compile(r"\b(?:minus|meno|menos|moins|min) (?=\d)")
CORRECTED = re.compile(
    r"\b(?:revis|correct|korrig|corrig|rectif|sorry|entschuldig|desole|instead|final|own|actual|true)\w*"
)
FOR = re.compile(
    r"\s*(?:points?\s+|punkte?\s+|puntos?\s+)?(?:for|in|on|fur|bei|pour|en|per|voor|para)\s+(?:the\s+)?"
)
LIST_SIGN = re.compile(
    r"^[ \t>#]*(?:[-*\u2022][ \t]+)?\d{1,2}[.)][ \t]+(?=\S*[^\W\d])", re.MULTILINE
)
COUNTED = re.compile(
    r"\b(?:step|criterion|kriterium|schritt|critere|criterio|section|part|version|no\.|type|grade?|stage|phase)\s*#?\d+\b(?=\s*[:.)-]|\s+[a-z])"
)
IN_ROW = re.compile(r"(?<![\w.,/])\d{1,2}(?:\s*[,/;|]\s*\d{1,2})+(?![\w/]|[.,]\d)")
IN_TABLE = re.compile(r"\|\s*([-+]?\d{1,3}(?:\.\d+)?)\s*(?=\||$)", re.MULTILINE)
NUMBER_ALONE = re.compile(r"^[^\w\n]*([-+]?\d{1,3}(?:\.\d+)?)[^\w\n]*$", re.MULTILINE)
LABELLED = re.compile(
    rf"[^\W\d][\"'`*_)\]]*\s*(?:[:=|]|->|=>|\u2192|\s-\s)\s*[\"'`*_(\[]*([-+]?\d{{1,3}}(?:\.\d+)?)(?!\w|[.,:]?\d){UNIT}"
)
LEADS = re.compile(
    r"(?:[:=|(\[>-]|\b(?:a|an|at|to|of|as|is|are|be|it|gets?|gives?|gave|scores?|scored|rated?|points?|auf|mit|ist|eine?|a|au|de|est|un|una|es|en|um|em|van|op|met))\s*[\"'`*_(]*$"
)
FOLLOWS = re.compile(
    r"[\"'`*_)]*\s*(?:[.,;:)\]|!\n]|$|-|because|since|for|and|points?|punkte?|weil|fur|car|parce|pour|por|puntos?|perche|per|pontos?|want|voor)"
)
SENTENCE = re.compile(r"[.!?;](?=\s|$)|\n")
STARS = re.compile("[\u2605\u2b50]+")

RANGE = re.compile(
    r"(?<![\w.,/])(-?\d{1,3})\s*(?:-|to|bis|a|until|through|tot|ate|up to|hasta)\s*(-?\d{1,3})(?![\w/])"
)
OUT_OF = re.compile(
    r"(?<![\w./])(\d{1,3}(?:[.,]\d+)?)?\s*(?:/|out of|of|von|sur|de|su|van|over|sobre)\s*(3|4|5|6|7|8|9|10|20|50|100)(?![\w./%-])(?!\s*[a-z]*g\b)"
)
OUT_OF_ALONE = re.compile(
    r"\b(?:out of|von maximal|von|sur|sobre)\s+(\d{1,3})\b(?!\s*(?:responses?|patients?|cases?|antworten))"
)
SCALE = re.compile(r"\b(?:\w*scales?|\w*skal[ae]n?|echelle|escala|scala|schaal|range|rango)\b")
LETTER = re.compile(
    r"\b(?:grade|score|rating|mark|gesamtnote|overall)\s*[:=]\s*[a-f][+-]?(?=\s*(?:[.,;)\n]|$))"
)
LOWER_IS_BETTER = re.compile(
    r"\b(?:lower|smaller|niedriger|kleiner|plus bas|menor|minore|lager) (?:is|are|ist|est|es|e|scores? (?:is|are|mean)|numbers? (?:is|are|mean)) (?:better|best|besser|mieux|mejor|meglio|melhor|beter)\b"
)
CHANGED = re.compile(
    r"\b(?:revers|invert|umgekehrt|invers|omgekeerd|percent|per cent|prozent|pourcent|porcent|percentual)\w*"
    r"|\b(?:half|halbe|demi|medios?|mezzi|meio) ?-?(?:points?|punkte?|puntos?|punti|pontos?)\b"
    r"|\b(?:multipl|divid|doubl|halv|verdoppel|halbier|rescal|normali[sz])\w*"
)
BEST = re.compile(
    r"(?<![\w.])(?:(\d{1,3})|(?:number )?(one)|(erste?))\s*(?:=|is|means?|being|ist|bedeutet|est|es|e|as|als)\s*(?:the |das |le |la |el )?(best|excellent|perfect\w*|top|highest|very good|good|superb|outstanding|beste?|sehr gut|meilleure?|mejor|migliore|melhor|worst|(?:very )?poor|(?:very )?bad|awful|terrible|dreadful|lowest|schlechteste?|pire|peor|peggiore|pior)\b"
)
MEANING = re.compile(
    r"(?<![\w.,])(-?\d{1,3})\s*(?:=|means|bedeutet|signifie|significa)\s*[\"']?[a-z]{3}"
)
WORST = (
    *("worst", "poor", "very poor", "bad", "very bad", "awful", "terrible", "dreadful"),
    "lowest",
    "schlechteste",
    "schlechtest",
    "pire",
    "peor",
    "peggiore",
    "pior",
)

A_VERDICT = (
    r"(?:\w*assess\w*|evaluation|verdicts?|ratings?|scor\w+|marks|json|block|object|this|these|following|itself|to be|that|bewert\w+|wertung\w*"
    r"|urteil\w*|noten?|notes?|notation|verdetto|giudizio|pronta|pronto|evaluacion|veredicto|puntua\w+|punteggi\w*|valutazion\w+|avaliac\w+|pontua\w+|beoordel\w+|cijfers?)"
)
ITS_MAKER = r"(?:response|note|text|author|answer|candidate|submission|letter|summary|model)"
QUOTED = re.compile(
    r"\b(?:response|answer|text[eo]?|testo|tekst|author|candidat[eo]?|model|note|submission|antwort|reponse|respuesta|risposta|resposta|antwoord|it|he|she|es|il|elle|autor|auteur|autore)\b"
    r"[^.!?\n]{0,40}\b(?:contain|includ|embed|inject|plant|claim|say|said|assert|demand|request|instruct|suggest|quot|offer|propos|attempt|tri(?:es|ed)|end(?:s|ed)\b|com(?:es|ing) with|writes?|wrote|rates? itself|g[ia]ves? itself|held?|holds?|has\b|asked me|told me|"
    r"enthalt|enthielt|behaupte|verlang|forder|steht|stand|conten|contien|affirm|preten|demand|dit\b|inclu[iy]|exige|dice|sostien|chiede|afferma|pede|alega|contem|ecrit|bevat|beweer|vraagt)\w*"
    rf"(?:(?:\W|\b(?:with|by|in|mit|par|con|com|met)\b)*$|[^.!?\n]{{0,40}}\b{A_VERDICT}\b)"
    r"|\b(?:ready[- ]?made|pre-?written|planted|embedded|injected|hidden|forged|fake|appended|prepended|smuggled|slipped|slip in|quot(?:e|ed|ing|ation)|verbatim|self-?assess\w*|eingebettet\w*|zitat|zitiert\w*|vorgefertigt\w*|gefalscht\w*|angehangt\w*|citation|cite[er]?\b|prefabrique\w*|falsifi\w*|incrustad\w*|citad[oa]|inserid[oa]|prefabbricat\w*|incorporat\w*|citaat|ingebed\w*|kant-en-klare?)\b"
    r"|\b(?:told|instructed|ordered) to (?:output|print|return|write|say|give|reply|answer)\b|\bfrom the (?:note|text|response|submission|candidate)\W*$|\b(?:json|block|object|verdict|assessment|above|following)\b[^.!?\n]{0,30}\b(?:(?:in|from|inside|part of) the (?:response|note|submission|text)\b|the (?:response|note|submission|candidate|author)'s)"
    r"|\b(?:inside|within) the (?:note|text|response|answer)\b"
    rf"|\bas (?:it|(?:the|its|this) {ITS_MAKER}(?:'s \w+)?) (?:ask|request|demand|instruct|want|requir|order)\w*"
    rf"|\b(?:asked|requested|demanded|instructed|ordered|required|wanted) by (?:the|its|this) {ITS_MAKER}\b"
)
DECLINED = re.compile(
    r"\bi(?:['\u2019]m| am)? (?:can ?not|can['\u2019]t|will not|won['\u2019]t|unable to|not able to|declin\w+ to|refus\w+ to)"
    r" (?:rat|evaluat|assess|judg|scor|grad)\w* (?:this|it|that|(?:the|this) (?:note|response|answer|text|summary)|(?:medical|clinical|such) \w+)\b"
)
SUPPOSED = re.compile(
    r"\b(?:for example|for instance|e\.g|an example|example(?: of)?|hypothetical\w*|suppos\w+|what[- ]if|imagin\w+|illustrat\w+|sample|placeholder|dummy|template|draft(?! (?:note|response|letter|plan|summary|report))|first (?:pass|thought|impression|attempt|guess)|initial(?:ly)?|preliminary|tentative\w*|provisional\w*|previous(?:ly)?|earlier|another (?:juror|rater|model|assessor|grader)|colleague|someone else|perfect (?:response|answer)"
    r"|beispiel\w*|hypothetisch\w*|angenommen|ware|hatte|entwurf|vorlaufig\w*|zunachst|erster? (?:eindruck|gedanke)|vorlage|exemple|supposons|hypothe\w+|brouillon|provisoire\w*|premiere? (?:impression|idee|version)|aurait|serait|modele|ejemplo|supong\w+|hipotetic\w+|borrador|primera impresion|habria|seria|plantilla|esempio|supponi\w*|ipotetic\w+|bozza|sarebbe|avrebbe|prima impressione|exemplo|suponha\w*|rascunho|primeira impressao|teria|voorbeeld\w*|stel dat|hypothetisch\w*|concept\b|voorlopig\w*|eerste indruk|zou)\b"
    r"|(?:^|[.!?\n]\s*)(?:had|were) |\b(?:juror|rater|judge|assessor|reviewer|grader|evaluator)s? before\b"
    r"|\bif (?!you\b|needed|necessary|required|there are|any)[^.!?\n]{0,120}|\bwould (?:have (?:been|given|scored|rated)|get|earn|merit|deserve|look|score|receive|be (?:rated|scored|given))\b"
)
ONLY_SUPPOSED = re.compile(
    r"\bwould be my (?:verdict|ratings?|scores?|assessment|marks?)\b"
    r"|\b(?:hypothetical\w*|placeholder|draft|template|dummy|(?:an|as|only|just|for|my) (?:example|illustration|sample)|would have (?:been|given|scored)|hypothetisch\w*|entwurf|vorlage"
    r"|(?:ein|als|nur ein) beispiel|brouillon|(?:un|d.|par) ?exemple|borrador|(?:un|como|por) ejemplo|bozza|(?:un|come|per) esempio|rascunho|(?:um|como|por) exemplo|een voorbeeld)\b"
)
TAKEN_BACK = re.compile(
    r"\b(?:disregard\w*|ignor\w*|discard\w*|retract\w*|withdr[ae]w\w*|scratch that|strike that|never ?mind|not my (?:own )?(?:verdict|assessment|rating|scores?|judge?ment|answer)|do not (?:use|count|take|accept|record)|don't (?:use|count|take|accept|record)|must not be (?:used|counted|taken)|on (?:second thought|reflection|reconsideration)|reconsider\w*|correction|correct(?:ing|ed) (?:this|that|my|the|myself)|revis(?:e|ed|ing|ion)\b|instead(?! of)|or rather|in truth|in reality|i (?:differ|disagree)|(?:drops?|falls?|rises?|goes|moves?|down|up) to\b|(?:minus|plus|add|subtract|deduct) (?:one|a|an|\d)\b|just kidding|i (?:take|took) (?:that|it|this) back|wait|sorry|my (?:mistake|error)|too (?:generous|high|low|harsh|lenient|strict)|(?:one|a|two|\d) points? (?:lower|higher|less|more|too)|invalid|void|cannot (?:rate|judge|assess)|unable to (?:rate|judge|assess)|not (?:final|a verdict|the verdict|valid|meant)|my (?:actual|real|true|final|own) (?:verdict|assessment|rating|scores?|judge?ment|answer) (?:is|are|would|follow|differ|come|below)"
    r"|ignorier\w*|nicht (?:mein\w*|gultig|verwenden|werten|endgultig)|verwerf\w*|verworfen|zuruck\w*|korrektur|berichtig\w*|uberleg\w*|stattdessen|vielmehr|moment|doch (?:eher|lieber|nur)|zu (?:hoch|niedrig|streng|milde)|ungultig"
    r"|pas (?:mon|ma|mes)|ecart\w*|rejet\w*|retir\w*|a la reflexion|rectifi\w*|plutot|au lieu|trop (?:haut|bas|eleve\w*|genereu\w*|severe\w*)|invalide"
    r"|no es mi|descart\w*|retir\w*|pensandolo|correccion|corrij\w*|mas bien|en (?:su|vez|lugar)|demasiado|anul\w*"
    r"|non e (?:il mio|la mia)|scart\w*|ritir\w*|ripensandoci|correzione|correggo|piuttosto|invece|troppo"
    r"|nao e (?:o meu|a minha)|desconsider\w*|pensando (?:bem|melhor)|correcao|corrijo|em vez|demais"
    r"|negeer\w*|niet (?:mijn|geldig)|bij nader inzien|correctie|herzie\w*|in plaats|eerder|te (?:hoog|laag|streng))\b"
)
# What opens around an object that is not said by the juror itself.
SET_APART = re.compile(
    r"(?:[\u201c\u201e\u00ab\u2018\u201a\u2039\"']|~~|<!--[^>]*|^[ \t]*>[^\n{]*|<\|im_start\|>\s*user|^(?:human|user)\s*:|<\s*(?:quote|blockquote|cite|q|example|draft|planted|response|candidate|context|reference|del|s|strike)\b[^<>]*>)\s*(?:```\w*\s*)?\[?\s*$",
    re.MULTILINE | re.IGNORECASE,
)

# Keys of the objects in an answer, and what its explanations say of scales.
SCORE_KEY = re.compile(
    r"scor|rating|grade|points?$|value|final|revis|correct|punkt|wert|note$|nota$|cijfer|voto|punt"
)
GRADE_KEY = re.compile(r"scor|rating|grade|punkt|wert|calif|puntu")
SCALE_KEY = re.compile(
    r"scale|skala|echelle|escala|scala|schaal|max|out.?of|range|top|^of$|highest|best|von$"
)
DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
OWN_SCALE = re.compile(
    r"\b(?:i|we|ich|wir|je|yo|io|eu|ik)\b[^.]{0,25}\b(?:us|rat|scor|grad|mark|nutz|verwend|bewert|utilis|not|us|punt|calific|valut|avali|gebruik|beoordel)\w*"
    r"|\b(?:these|all|my|the above) (?:scores?|ratings?) (?:is|are)\b"
)
SCALE_NAMED = re.compile("scal|skal|schaal|echelle|out of|von|/|percent|prozent")

FARTHEST = 300  # blanks: more than the distances above, which count characters, take in
_LONG_BLANK = re.compile(rf"[^\S\n]{{{FARTHEST + 1},}}")


def shorten_blanks(text: str) -> str:
    """Return a text with very long runs of blanks cut short, which patterns would try blank by blank."""
    return _LONG_BLANK.sub(" " * FARTHEST, text)


def normalize(text: str) -> str:
    """Return a text in lower case, without accents, invisible characters and look-alikes."""
    if not text.isascii():
        split = unicodedata.normalize("NFKD", text.translate(UNSEEN))
        text = "".join(sign for sign in split if not unicodedata.combining(sign))
        text = text.casefold().translate(ALIKE)
        text = HAN_SCORE.sub(lambda sign: HAN[sign[1]], text)
        text = HAN_POINTS.sub(" ", text)
        return "".join(
            f"{unicodedata.decimal(sign)}" if sign.isdecimal() else sign for sign in text
        )
    return text.casefold()
