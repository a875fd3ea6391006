//! Which series a query selects. Not a parser: it knows just enough of the language to find metrics and their labels.

/// Words that are no metrics where no bracket follows them.
const KEYWORDS: [&str; 9] =
    ["by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless"];
/// Words that are followed by a list of labels.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// A metric and what is asked of its labels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    pub(crate) matchers: Vec<Matcher>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matcher {
    pub(crate) label: String,
    pub(crate) value: String,
    /// Whether the value is meant as it stands, and is no pattern.
    pub(crate) is_literal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// The series that a query selects.
pub(crate) fn selectors(query: &str) -> Vec<Selector> {
    let tokens = tokens(query);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(word) = &tokens[at] else {
            at += 1;
            continue;
        };
        at += 1;
        let next = tokens.get(at);
        if BEFORE_LABELS.contains(&word.as_str()) && next == Some(&Token::Sign('(')) {
            at = after(&tokens, at, ')');
        } else if word == "offset" {
            at += 1;
        } else if next == Some(&Token::Sign('{')) {
            let end = after(&tokens, at, '}');
            found.push(Selector { metric: word.clone(), matchers: matchers(&tokens[at..end]) });
            at = end;
        } else if !KEYWORDS.contains(&word.as_str()) && !is_operator(next) {
            found.push(Selector { metric: word.clone(), matchers: Vec::new() });
        }
        if tokens.get(at) == Some(&Token::Sign('[')) {
            at = after(&tokens, at, ']');
        }
    }
    found
}

/// The labels that a query groups or joins by.
pub(crate) fn grouped_by(query: &str) -> Vec<String> {
    let tokens = tokens(query);
    let mut labels = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if BEFORE_LABELS.contains(&word.as_str()) {
            let list = &tokens[at + 1..after(&tokens, at + 1, ')')];
            labels.extend(list.iter().filter_map(|token| match token {
                Token::Word(label) => Some(label.clone()),
                Token::Text(_) | Token::Sign(_) => None,
            }));
        }
    }
    labels
}

/// Whether what comes next makes the word before it a function or an aggregation.
fn is_operator(next: Option<&Token>) -> bool {
    match next {
        Some(Token::Sign(sign)) => *sign == '(',
        Some(Token::Word(word)) => word == "by" || word == "without",
        Some(Token::Text(_)) | None => false,
    }
}

fn after(tokens: &[Token], from: usize, end: char) -> usize {
    let rest = &tokens[from..];
    from + 1 + rest.iter().position(|token| *token == Token::Sign(end)).expect("it is closed")
}

fn matchers(braces: &[Token]) -> Vec<Matcher> {
    let inner = &braces[1..braces.len() - 1];
    let parts = inner.split(|token| *token == Token::Sign(',')).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (Some(Token::Word(label)), Some(Token::Text(value))) = (part.first(), part.last())
            else {
                panic!("not a matcher: {part:?}");
            };
            let is_literal = !part.contains(&Token::Sign('~'));
            Matcher { label: label.clone(), value: value.clone(), is_literal }
        })
        .collect()
}

/// Words, texts in double quotes, and signs; without numbers and durations.
fn tokens(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '$');
        let length = if is_part(first) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if !first.is_ascii_digit() {
                tokens.push(Token::Word(rest[..end].to_owned()));
            } else if tokens.last() == Some(&Token::Word("offset".to_owned())) {
                // A duration is one token as well, or the word after it would pass for it.
                tokens.push(Token::Text(rest[..end].to_owned()));
            }
            end
        } else if first == '"' {
            let end = 1 + rest[1..].find('"').expect("the text is closed");
            tokens.push(Token::Text(rest[1..end].to_owned()));
            end + 1
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

#[test]
fn the_series_of_a_query_are_found() {
    let names = |query| -> Vec<String> {
        selectors(query).into_iter().map(|selector| selector.metric).collect()
    };
    for (query, expected) in [
        ("a", vec!["a"]),
        (
            "sum by (x, le) (rate(a_bucket{x=\"b\", y=~\"c|d\"}[$__rate_interval]))",
            vec!["a_bucket"],
        ),
        ("(a unless a offset 5m) or increase(a[5m])", vec!["a", "a", "a"]),
        ("a == 1 unless on (x) (b and on (x) c)", vec!["a", "b", "c"]),
        ("histogram_quantile(0.99, a) > 7 * 24 * 3600 - time()", vec!["a"]),
        ("max(a) / sum without (x) (b)", vec!["a", "b"]),
        ("label_replace(a, \"b\", \"$1\", \"c\", \"(.+)\")", vec!["a"]),
    ] {
        assert_eq!(names(query), expected, "{query}");
    }
}

#[test]
fn matchers_and_grouping_are_found() {
    let matcher = |label: &str, value: &str, is_literal| Matcher {
        label: label.into(),
        value: value.into(),
        is_literal,
    };
    let query = "sum by (x, y) (a{b=\"c, d\", e=~\"f.*\"}) * on (z) g";
    let expected = [matcher("b", "c, d", true), matcher("e", "f.*", false)];
    assert_eq!(selectors(query)[0].matchers, expected);
    assert_eq!(grouped_by(query), ["x", "y", "z"]);
}
