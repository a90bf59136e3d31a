//! The output of `ctx --help`: the commands in groups.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};
use ctx_terminal::format::wrapped;
use ctx_terminal::table::terminal_columns;

use super::{Cli, STYLES};

/// Every listed command, by purpose.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start here", &["sessions", "status", "replay", "inspect", "stats"]),
    (
        "Keep an agent inside its window",
        &["run", "setup", "serve", "mcp", "chat", "rpc", "statusline"],
    ),
    (
        "Work on a session",
        &["compact", "compactions", "diff", "expand", "why", "assemble", "check", "convert"],
    ),
    ("Memory and files", &["memory", "recall", "index", "context"]),
    ("Compare and configure", &["doctor", "eval", "engines", "store", "config", "completions"]),
];

/// Maximum width of text.
const TEXT_COLUMNS: usize = 100;

/// Returns the command line, with its list of commands in groups.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let columns = terminal_columns().unwrap_or(TEXT_COLUMNS).min(TEXT_COLUMNS);
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}\
         See `ctx help COMMAND` for details.\n\n{1}Options:{1:#}\n{{options}}",
        groups(&command, columns),
        STYLES.get_header(),
    );
    command.help_template(template)
}

fn groups(command: &Command, columns: usize) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let about = wrapped(&about, [width + 4; 2], Some(columns));
            let about = about.join(&format!("\n{:1$}", "", width + 4));
            let _ = writeln!(text, "  {literal}{:<width$}{literal:#}  {about}", command.get_name());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_listed_once_and_no_line_is_wider_than_the_terminal() {
        let command = Cli::command();
        let mut shown: Vec<_> =
            command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name()).collect();
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, shown);
        for columns in [60, 80, 100] {
            let text = anstream::adapter::strip_str(&groups(&command, columns)).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        }
        assert!(self::command().render_help().to_string().contains("Start here:\n  sessions"));
    }

    /// `UPDATE_EXPECT=1 cargo test -p ctx-commands` writes the page.
    #[test]
    fn the_page_of_commands_is_current() {
        let options =
            clap_markdown::MarkdownOptions::new().title("Commands".to_owned()).show_footer(false);
        let page = clap_markdown::help_markdown_command_custom(&Cli::command(), &options);
        let lines = page.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        expect_test::expect_file!["../../../../docs/cli.md"].assert_eq(&format!("{lines}\n"));
    }
}
