//! One file of the invented project for each command of its protocol, from a table.

use std::fmt::Write;

use super::script::Script;

/// A field of a command's body: name, type, what it is.
type Field = (&'static str, &'static str, &'static str);

/// One command of the protocol.
#[derive(Default)]
struct Command {
    name: &'static str,
    about: &'static str,
    why: &'static str,
    fields: Vec<Field>,
    action: &'static str,
    answer: &'static str,
}

/// All commands, in the order of their codes.
fn commands() -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for line in Script::new(include_str!("../../assets/tidemark/commands.script")) {
        if line.verb == "command" {
            let (name, about) = (line.arguments, line.body);
            commands.push(Command { name, about, ..Command::default() });
        }
        let Some(command) = commands.last_mut() else { continue };
        match line.verb {
            "why" => command.why = line.body,
            "field" => command.fields.push((line.split().0, line.split().1, line.body)),
            "action" => command.action = line.body,
            "answer" => command.answer = line.body,
            _ => {}
        }
    }
    commands
}

/// The name of the command's type.
fn type_name(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Paths and texts of all files under `src/commands/`.
pub(crate) fn files() -> Vec<(String, String)> {
    let commands = commands();
    let mut files = vec![("src/commands/mod.rs".to_owned(), module(&commands))];
    for (code, command) in (1..).zip(&commands) {
        files.push((format!("src/commands/{}.rs", command.name), file(code, command)));
    }
    files
}

fn file(code: u8, command: &Command) -> String {
    let (upper, kind) = (command.name.to_uppercase(), type_name(command.name));
    let mut out = String::new();
    let _ = write!(
        out,
        "//! `{upper}`: {}.\n//!\n//! {}\n//!\n//! Answer: {}.\n\n\
         use bytes::{{BufMut, BytesMut}};\nuse tracing::{{debug, info}};\n\n\
         use crate::clock::now_ms;\nuse crate::commands::{{Code, Command, Context}};\n\
         use crate::frame::{{Fields, FrameError}};\nuse crate::job::{{JobId, Priority}};\n\n\
         /// {}.\n#[derive(Clone, Debug, PartialEq, Eq)]\npub struct {kind} {{\n",
        command.about.to_lowercase(),
        command.why,
        command.answer,
        command.about
    );
    for (name, kind, about) in &command.fields {
        let kind = if *kind == "text" { "Box<str>" } else { kind };
        let _ = write!(out, "    /// {about}\n    pub {name}: {kind},\n");
    }
    let _ = write!(
        out,
        "}}\n\nimpl Command for {kind} {{\n    const CODE: u8 = {code};\n    const NAME: &'static str = \
         \"{upper}\";\n\n    fn parse(body: &[u8]) -> Result<Self, FrameError> {{\n        \
         let mut fields = Fields::new(body);\n"
    );
    for (name, kind, _) in &command.fields {
        let into = if *kind == "text" { ".into()" } else { "" };
        let _ = writeln!(out, "        let {name} = fields.{kind}()?{into};");
    }
    let names: Vec<_> = command.fields.iter().map(|(name, ..)| *name).collect();
    let _ = write!(
        out,
        "        Ok(Self {{ {} }})\n    }}\n\n    async fn run(self, context: &mut Context<'_>, out: &mut \
         BytesMut) -> Code {{\n        let started = now_ms();\n        let mut queue = \
         context.queue.lock().await;\n        {}\n        context.metrics.observe(Self::CODE, now_ms() - \
         started);\n        Code::Ok\n    }}\n}}\n",
        names.join(", "),
        command.action
    );
    out.push_str(&tests(command, &kind));
    out
}

fn tests(command: &Command, kind: &str) -> String {
    let mut body = String::new();
    let mut wanted = String::new();
    for (at, (name, kind, _)) in command.fields.iter().enumerate() {
        let (put, value) = match *kind {
            "text" => {
                (format!("body.extend(*b\"\\x04\\x00to-{at}\");"), format!("\"to-{at}\".into()"))
            }
            "u8" => ("body.push(3);".to_owned(), "3".to_owned()),
            kind => (format!("body.extend(7_{kind}.to_le_bytes());"), "7".to_owned()),
        };
        let _ = writeln!(body, "        {put}");
        let _ = write!(wanted, "{name}: {value}, ");
    }
    let wanted = wanted.trim_end_matches(", ");
    let mut out = format!(
        "\n#[cfg(test)]\nmod tests {{\n    use super::*;\n\n    fn body() -> Vec<u8> {{\n        let mut body = \
         Vec::new();\n{body}        body\n    }}\n\n    #[test]\n    fn a_whole_body_is_read() {{\n        \
         assert_eq!({kind}::parse(&body()), Ok({kind} {{ {wanted} }}));\n    }}\n"
    );
    if !command.fields.is_empty() {
        let _ = write!(
            out,
            "\n    #[test]\n    fn a_short_body_is_refused() {{\n        let body = body();\n        for end in \
             0..body.len() {{\n            assert_eq!({kind}::parse(&body[..end]), Err(FrameError::Short), \
             \"{{end}} bytes\");\n        }}\n    }}\n"
        );
    }
    if command.fields.iter().any(|(_, kind, _)| *kind == "text") {
        let _ = write!(
            out,
            "\n    #[test]\n    fn a_name_that_is_no_text_is_refused() {{\n        let body = [2, 0, 0xff, 0xfe, 0, \
             0, 0, 0, 0, 0, 0, 0];\n        assert_eq!({kind}::parse(&body), Err(FrameError::NotText));\n    }}\n"
        );
    }
    out.push_str("}\n");
    out
}

fn module(commands: &[Command]) -> String {
    let mut out = String::from("//! The commands of the protocol, one file for each.\n\n");
    for command in commands {
        let _ = writeln!(out, "mod {};", command.name);
    }
    out.push_str(
        "\nuse bytes::BytesMut;\nuse tokio::sync::{Mutex, Notify};\n\nuse crate::frame::{Frame, FrameError};\n\
         use crate::lease::WorkerId;\nuse crate::metrics::Metrics;\nuse crate::queue::Queue;\n\n\
         /// What a command may use.\npub struct Context<'a> {\n    /// Who sent it.\n    pub worker: WorkerId,\n    \
         /// The queue.\n    pub queue: &'a Mutex<Queue>,\n    /// Wakes the sweeper.\n    pub changed: &'a Notify,\n    \
         /// How long commands take.\n    pub metrics: &'a Metrics,\n}\n\n\
         /// A command of the protocol.\npub trait Command: Sized {\n    /// Its number in a frame.\n    const CODE: u8;\n    \
         /// Its name in the log.\n    const NAME: &'static str;\n\n    /// Reads the body of its frame.\n    \
         fn parse(body: &[u8]) -> Result<Self, FrameError>;\n\n    /// Does it, and writes the body of the answer.\n    \
         async fn run(self, context: &mut Context<'_>, out: &mut BytesMut) -> Code;\n}\n\n\
         /// Runs the command of a frame.\npub async fn run(frame: Frame, context: &mut Context<'_>, out: &mut \
         BytesMut) {\n    let code = match frame.command {\n",
    );
    for command in commands {
        let (name, kind) = (command.name, type_name(command.name));
        let _ = writeln!(
            out,
            "        {name}::{kind}::CODE => one::<{name}::{kind}>(&frame, context, out).await,"
        );
    }
    out.push_str("        _ => Code::Unknown,\n    };\n    Frame::put(out, code as u8, frame.request, &[]);\n}\n");
    out
}
