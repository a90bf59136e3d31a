//! One file of the invented project for each command of its protocol, from a table.

use std::fmt::Write;

/// A field of a command's body: name, type, what it is.
type Field = (&'static str, &'static str, &'static str);

/// One command of the protocol.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    why: &'static str,
    fields: &'static [Field],
    action: &'static str,
    pub(crate) answer: &'static str,
}

const JOB: Field = ("job", "u64", "The job.");
const TOPIC: Field = ("topic", "text", "The topic.");
const TTL: Field = ("ttl", "u64", "How long the lease is to last, in milliseconds.");

/// All commands, in the order of their codes.
pub(crate) const COMMANDS: [Command; 18] = [
    Command {
        name: "hello",
        about: "Agrees on the version of the protocol",
        why: "The first frame of a connection. A server that speaks several versions takes the \
              highest that both know; a client must not send anything else before the answer.",
        fields: &[
            ("lowest", "u8", "The lowest version the client speaks."),
            ("highest", "u8", "The highest version the client speaks."),
        ],
        action: "if self.lowest > 3 || self.highest < 3 {\n            return Code::BadFrame;\n        }\n        out.put_u8(3);\n        out.put_u64_le(started);",
        answer: "the version and the server's time",
    },
    Command {
        name: "push",
        about: "Takes a job in",
        why: "The job is in the log before the answer is sent. A client that loses the connection \
              before it has the answer must push again, and the queue may then hold the job twice.",
        fields: &[
            TOPIC,
            ("priority", "u8", "0 to 9."),
            ("max_deliveries", "u32", "After how many deliveries it is dead; 0 for never."),
        ],
        action: "let Some(priority) = Priority::new(self.priority) else { return Code::BadFrame };\n        match queue.push(&self.topic, priority, self.payload.clone(), self.max_deliveries) {\n            Ok(id) => out.put_u64_le(id.0),\n            Err(error) => return Code::from(error),\n        }\n        context.changed.notify_one();",
        answer: "the job's id",
    },
    Command {
        name: "pull",
        about: "Hands a job to a worker",
        why: "Leases that have run out are put back first, so that no worker waits for the sweeper \
              while there is work. The most urgent job leaves first, and of those the oldest.",
        fields: &[TOPIC, TTL],
        action: "for id in queue.expired() {\n            if let Err(error) = queue.expire(id) {\n                return Code::from(error);\n            }\n        }\n        match queue.pull(&self.topic, context.worker, self.ttl) {\n            Ok(Some((job, lease))) => put_job(out, &job, &lease, started),\n            Ok(None) => return Code::Empty,\n            Err(error) => return Code::from(error),\n        }\n        context.changed.notify_one();",
        answer: "the job, its payload and its deadline",
    },
    Command {
        name: "ack",
        about: "Says that a job is done",
        why: "The job is gone for good. A worker whose lease has run out gets GONE: somebody else \
              may have the job already, and what was done must be able to bear being done twice.",
        fields: &[JOB],
        action: "if let Err(error) = queue.ack(JobId(self.job), context.worker) {\n            return Code::from(error);\n        }",
        answer: "nothing",
    },
    Command {
        name: "nack",
        about: "Says that a job could not be done",
        why: "The job is ready again at once, in its old place, or dead if it was delivered as \
              often as it may be.",
        fields: &[JOB, ("reason", "text", "Why, for the log of the server.")],
        action: "if let Err(error) = queue.nack(JobId(self.job), context.worker) {\n            return Code::from(error);\n        }\n        debug!(job = self.job, reason = %self.reason, \"refused\");\n        context.changed.notify_one();",
        answer: "nothing",
    },
    Command {
        name: "extend",
        about: "Lengthens a lease",
        why: "For work that takes longer than was thought. The new end counts from now, not from \
              the old end, so a worker can shorten a lease too.",
        fields: &[JOB, TTL],
        action: "match queue.extend(JobId(self.job), context.worker, self.ttl) {\n            Ok(deadline) => out.put_u64_le(deadline),\n            Err(error) => return Code::from(error),\n        }\n        out.put_u64_le(started);\n        context.changed.notify_one();",
        answer: "the new deadline and the server's time",
    },
    Command {
        name: "peek",
        about: "Shows the next job of a topic without leasing it",
        why: "For people at a terminal. The job may be gone when the answer is read.",
        fields: &[TOPIC],
        action: "match queue.peek(&self.topic) {\n            Some(job) => put_job_head(out, job),\n            None => return Code::Empty,\n        }",
        answer: "the job without its payload",
    },
    Command {
        name: "kill",
        about: "Makes a job dead, whoever holds it",
        why: "For a job that poisons its workers. Its lease ends; its worker learns of it with its \
              next frame about the job.",
        fields: &[JOB],
        action: "match queue.kill(JobId(self.job)) {\n            Ok(true) => info!(job = self.job, \"killed\"),\n            Ok(false) => return Code::Unknown,\n            Err(error) => return Code::from(error),\n        }",
        answer: "nothing",
    },
    Command {
        name: "revive",
        about: "Makes a dead job ready again",
        why: "Its deliveries start from zero. It takes its old place in the order, which is usually \
              the front.",
        fields: &[JOB],
        action: "match queue.revive(JobId(self.job)) {\n            Ok(true) => context.changed.notify_one(),\n            Ok(false) => return Code::Unknown,\n            Err(error) => return Code::from(error),\n        }",
        answer: "nothing",
    },
    Command {
        name: "dead",
        about: "Lists dead jobs",
        why: "Newest first. A page at a time: `after` is the last id of the page before.",
        fields: &[
            ("after", "u64", "Only jobs older than this one; 0 for the first page."),
            ("count", "u32", "How many at most; 1000 is the limit."),
        ],
        action: "let page = queue.dead_page(JobId(self.after), self.count.min(1000) as usize);\n        out.put_u32_le(page.len() as u32);\n        for (id, died_at) in page {\n            out.put_u64_le(id.0);\n            out.put_u64_le(died_at);\n        }",
        answer: "ids and when they died",
    },
    Command {
        name: "pause",
        about: "Stops a topic from handing out jobs",
        why: "Leases that are out stay out. `PULL` answers EMPTY until `RESUME`, as if there were \
              nothing to do, so that workers need not know of it.",
        fields: &[TOPIC],
        action: "if !queue.pause(&self.topic) {\n            return Code::Unknown;\n        }\n        info!(topic = %self.topic, \"paused\");",
        answer: "nothing",
    },
    Command {
        name: "resume",
        about: "Lets a paused topic hand out jobs again",
        why: "Waiting workers are woken one after the other, not all at once.",
        fields: &[TOPIC],
        action: "if !queue.resume(&self.topic) {\n            return Code::Unknown;\n        }\n        info!(topic = %self.topic, \"resumed\");\n        context.changed.notify_one();",
        answer: "nothing",
    },
    Command {
        name: "purge",
        about: "Throws away the ready jobs of a topic",
        why: "Leased and dead jobs stay. There is no way back, which is why the number of jobs that \
              the client expects must be near the number there are.",
        fields: &[TOPIC, ("expected", "u32", "How many jobs the client thinks there are.")],
        action: "let ready = queue.ready_len(&self.topic) as u32;\n        if ready.abs_diff(self.expected) > ready / 10 {\n            out.put_u32_le(ready);\n            return Code::BadFrame;\n        }\n        match queue.purge(&self.topic) {\n            Ok(count) => out.put_u32_le(count as u32),\n            Err(error) => return Code::from(error),\n        }",
        answer: "how many were thrown away",
    },
    Command {
        name: "topics",
        about: "Lists topics",
        why: "With the number of ready, leased and dead jobs of each. The numbers are of one moment.",
        fields: &[("prefix", "text", "Only topics that begin so.")],
        action: "let topics = queue.topics(&self.prefix);\n        out.put_u32_le(topics.len() as u32);\n        for topic in topics {\n            put_topic(out, &topic);\n        }",
        answer: "names and numbers",
    },
    Command {
        name: "leases",
        about: "Lists the leases that are out",
        why: "By deadline, the next to run out first. The server's time stands at the head, for \
              clients must not use their own.",
        fields: &[("count", "u32", "How many at most.")],
        action: "out.put_u64_le(started);\n        let leases = queue.leases(self.count as usize);\n        out.put_u32_le(leases.len() as u32);\n        for lease in leases {\n            put_lease(out, lease);\n        }",
        answer: "the server's time, then jobs, workers and deadlines",
    },
    Command {
        name: "stats",
        about: "Tells what the server has counted",
        why: "Cheap enough to be asked once a second. Counters start at zero when the server does.",
        fields: &[],
        action: "let counters = queue.counters();\n        for value in [counters.pushed, counters.delivered, counters.acked, counters.expired, counters.dead] {\n            out.put_u64_le(value);\n        }\n        out.put_u64_le(queue.oldest_ready().unwrap_or(0));",
        answer: "six numbers",
    },
    Command {
        name: "compact",
        about: "Rewrites the log without what is done",
        why: "Runs by itself at night. By hand it blocks the queue for about a second for each \
              million jobs.",
        fields: &[("keep_dead", "u8", "1 to keep dead jobs, 0 to drop them.")],
        action: "match queue.compact(self.keep_dead == 1) {\n            Ok(bytes) => out.put_u64_le(bytes),\n            Err(error) => return Code::from(error),\n        }\n        info!(ms = now_ms() - started, \"compacted\");",
        answer: "how many bytes were saved",
    },
    Command {
        name: "ping",
        about: "Answers",
        why: "For health checks and for clients that measure how far away the server is.",
        fields: &[("echo", "u64", "Comes back as it is.")],
        action: "out.put_u64_le(self.echo);\n        out.put_u64_le(started);",
        answer: "the number and the server's time",
    },
];

/// The name of the command's type.
pub(crate) fn type_name(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Paths and texts of all files under `src/commands/`.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut files = vec![("src/commands/mod.rs".to_owned(), module())];
    for (code, command) in (1..).zip(&COMMANDS) {
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
    for (name, kind, about) in command.fields {
        let kind = if *kind == "text" { "Box<str>" } else { kind };
        let _ = write!(out, "    /// {about}\n    pub {name}: {kind},\n");
    }
    let _ = write!(
        out,
        "}}\n\nimpl Command for {kind} {{\n    const CODE: u8 = {code};\n    const NAME: &'static str = \
         \"{upper}\";\n\n    fn parse(body: &[u8]) -> Result<Self, FrameError> {{\n        \
         let mut fields = Fields::new(body);\n"
    );
    for (name, kind, _) in command.fields {
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

fn module() -> String {
    let mut out = String::from("//! The commands of the protocol, one file for each.\n\n");
    for command in &COMMANDS {
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
    for command in &COMMANDS {
        let (name, kind) = (command.name, type_name(command.name));
        let _ = writeln!(
            out,
            "        {name}::{kind}::CODE => one::<{name}::{kind}>(&frame, context, out).await,"
        );
    }
    out.push_str("        _ => Code::Unknown,\n    };\n    Frame::put(out, code as u8, frame.request, &[]);\n}\n");
    out
}
