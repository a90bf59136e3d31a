//! The top-level modules of a crate and the uses between them, read from its source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree};

/// The modules of a crate and the uses between them, without code under `#[cfg(test)]`.
#[derive(Default)]
pub(crate) struct Modules {
    pub(crate) names: BTreeSet<String>,
    /// Each pair of a module and a module that it uses, with the first file with such a use.
    edges: BTreeMap<(String, String), PathBuf>,
}

impl Modules {
    /// Reads the crate with this `src` folder, from its root through each `mod`.
    pub(crate) fn read(source: &Path) -> Self {
        let root = ["lib.rs", "main.rs"].map(|name| source.join(name));
        let root = root.into_iter().find(|path| path.is_file()).expect("a crate has a root");
        let mut reader = Reader { folder: source.to_owned(), ..Reader::default() };
        reader.file(&root);
        let mut modules = Self { names: reader.names, edges: BTreeMap::new() };
        for (from, name, file) in reader.uses {
            let to =
                if modules.names.contains(&name) { Some(&name) } else { reader.home.get(&name) };
            if let Some(to) = to.filter(|to| **to != from && modules.names.contains(*to)) {
                let file = file.strip_prefix(source).expect("a file of the crate").to_owned();
                modules.edges.entry((from, to.clone())).or_insert(file);
            }
        }
        modules
    }

    /// Returns each group of three or more modules that reach each other.
    pub(crate) fn cycles(&self) -> Vec<Vec<String>> {
        let mut reached: BTreeSet<(&str, &str)> =
            self.edges.keys().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        for via in &self.names {
            for from in &self.names {
                for to in &self.names {
                    if reached.contains(&(from, via)) && reached.contains(&(via, to)) {
                        reached.insert((from, to));
                    }
                }
            }
        }
        let groups: BTreeSet<Vec<String>> = self
            .names
            .iter()
            .map(|one| {
                let both = |other: &&String| {
                    reached.contains(&(one, other)) && reached.contains(&(other, one))
                };
                self.names.iter().filter(both).cloned().collect()
            })
            .collect();
        groups.into_iter().filter(|group| group.len() > 2).collect()
    }

    /// Returns the edges between these modules as a sentence.
    pub(crate) fn edges_within(&self, modules: &[String]) -> String {
        let within = self
            .edges
            .iter()
            .filter(|((from, to), _)| modules.contains(from) && modules.contains(to));
        let edges: Vec<_> = within
            .map(|((from, to), file)| format!("{from} uses {to} (src/{})", file.display()))
            .collect();
        edges.join(", ") + "."
    }
}

/// Returns the names of the types and constants that a file declares.
pub(crate) fn declared(file: &Path) -> BTreeSet<String> {
    let name = |item: Item| match item {
        Item::Struct(item) => Some(item.ident),
        Item::Enum(item) => Some(item.ident),
        Item::Trait(item) => Some(item.ident),
        Item::Type(item) => Some(item.ident),
        Item::Const(item) => Some(item.ident),
        _ => None,
    };
    parse(file).items.into_iter().filter_map(name).map(|name| name.to_string()).collect()
}

/// Returns the Rust files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let items = std::fs::read_dir(folder).expect("a readable folder");
    let paths = items.map(|item| item.expect("an entry").path());
    let files = paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

fn parse(file: &Path) -> syn::File {
    let text = std::fs::read_to_string(file).expect("a readable file");
    syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

#[derive(Default)]
struct Reader {
    names: BTreeSet<String>,
    /// The module of each name that the root imports or re-exports.
    home: BTreeMap<String, String>,
    /// A top-level module, a name that it uses from the root of the crate, and the file.
    uses: Vec<(String, String, PathBuf)>,
    /// The path of the module that is being read.
    at: Vec<String>,
    path: PathBuf,
    /// The folder of the files of its modules.
    folder: PathBuf,
}

impl Reader {
    fn file(&mut self, path: &Path) {
        let before = std::mem::replace(&mut self.path, path.to_owned());
        self.visit_file(&parse(path));
        self.path = before;
    }

    /// Adds the name that a path uses from the root of the crate, if any.
    fn add(&mut self, path: &[String]) {
        let Some(top) = self.at.first() else { return };
        let ups = match path.first().map(String::as_str) {
            Some("crate") => self.at.len(),
            Some("super") => path.iter().take_while(|part| *part == "super").count(),
            _ => return,
        };
        let name = if path[0] == "crate" { path.get(1) } else { path.get(ups) };
        if let Some(name) = name.filter(|_| ups >= self.at.len()) {
            self.uses.push((top.clone(), name.clone(), self.path.clone()));
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if is_test(&module.attrs) {
            return;
        }
        let name = module.ident.to_string();
        if self.at.is_empty() {
            self.names.insert(name.clone());
        }
        let folder = self.folder.join(&name);
        let files = [folder.with_extension("rs"), folder.join("mod.rs")];
        let before = std::mem::replace(&mut self.folder, folder);
        self.at.push(name);
        if module.content.is_some() {
            visit::visit_item_mod(self, module);
        } else {
            let file = files.iter().find(|file| file.is_file());
            self.file(file.unwrap_or_else(|| panic!("no file of {:?}", self.at)));
        }
        self.at.pop();
        self.folder = before;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_test(&item.attrs) {
            return;
        }
        let mut paths = Vec::new();
        leaves(&item.tree, &mut Vec::new(), &mut paths);
        for (path, name) in paths {
            if self.at.is_empty() {
                let own = path.iter().find(|part| !["crate", "self"].contains(&part.as_str()));
                self.home.extend(own.map(|module| (name, module.clone())));
            } else {
                self.add(&path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.add(&parts);
        visit::visit_path(self, path);
    }

    /// The input of a macro is unparsed tokens, so this reads the name after each `crate::`.
    fn visit_macro(&mut self, called: &'ast Macro) {
        let text: String = called.tokens.to_string().split_whitespace().collect();
        for rest in text.split("crate::").skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.add(&["crate".to_owned(), rest[..end].to_owned()]);
        }
        visit::visit_macro(self, called);
    }
}

/// Whether an item is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// Adds each path of a `use`, with the name that it introduces.
fn leaves(tree: &UseTree, before: &mut Vec<String>, paths: &mut Vec<(Vec<String>, String)>) {
    let mut add = |before: &[String], last: String, name: String| {
        paths.push((before.iter().cloned().chain([last]).collect(), name));
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            leaves(&path.tree, before, paths);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|one| leaves(one, before, paths)),
        UseTree::Name(name) => add(before, name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(name) => add(before, name.ident.to_string(), name.rename.to_string()),
        UseTree::Glob(_) => add(before, "*".to_owned(), "*".to_owned()),
    }
}
