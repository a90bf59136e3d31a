//! A session as a script: what is said, thought and done in it, in that order.

/// One instruction of a script: a line `@VERB ARGUMENTS`, and the text below it to the next one.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub(super) verb: &'a str,
    pub(super) arguments: &'a str,
    pub(super) body: &'a str,
}

impl<'a> Instruction<'a> {
    fn read(text: &'a str) -> Self {
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let (verb, arguments) = head.split_once(' ').unwrap_or((head, ""));
        Self { verb, arguments, body }
    }

    /// The first argument, and the others.
    pub(super) fn split(&self) -> (&'a str, &'a str) {
        self.arguments.split_once(' ').unwrap_or((self.arguments, ""))
    }
}

/// The instructions of a script.
pub(super) struct Script<'a>(std::iter::Peekable<std::str::Split<'a, &'static str>>);

impl<'a> Script<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('@').unwrap_or(text);
        Self(text.strip_suffix('\n').unwrap_or(text).split("\n@").peekable())
    }

    /// The next instruction, if it is one of these.
    pub(super) fn next_of(&mut self, verbs: &[&str]) -> Option<Instruction<'a>> {
        let next = self.0.next_if(|text| verbs.contains(&Instruction::read(text).verb));
        next.map(Instruction::read)
    }

    /// The text of the next instruction `@with`: what the text before it becomes.
    pub(super) fn with(&mut self) -> &'a str {
        self.next_of(&["with"]).map_or("", |new| new.body)
    }
}

impl<'a> Iterator for Script<'a> {
    type Item = Instruction<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Instruction::read)
    }
}
