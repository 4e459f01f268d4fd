//! Tokens to templates.

use std::rc::Rc;

use super::lex::{Lexer, Token, Type};
use super::node::{Branch, Command, Kind, Node, Number, Pipe, Source, Tree};
use super::value::Value;
use crate::number;

/// How deeply actions and parentheses may be nested.
const MAX_DEPTH: usize = 2000;

/// Reads a template and those defined within it; what is wrong is said as Go says it.
pub(crate) fn parse(
    name: &str,
    text: &str,
    is_function: &dyn Fn(&str) -> bool,
) -> Result<Vec<Tree>, String> {
    let source = Rc::new(Source {
        name: Rc::from(name),
        text: Rc::from(text),
    });
    let mut parser = Parser {
        lexer: Lexer::new(text),
        source,
        is_function,
        pending: Vec::new(),
        line: 0,
        variables: vec![Rc::from("$")],
        action_line: 0,
        ranges: 0,
        depth: 0,
        trees: Vec::new(),
    };
    parser.file(name)?;
    Ok(parser.trees)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    source: Rc<Source>,
    is_function: &'a dyn Fn(&str) -> bool,
    /// Tokens that were put back, the next one last.
    pending: Vec<Token>,
    /// The line of the token that was read last.
    line: usize,
    variables: Vec<Rc<str>>,
    /// Where the action began that is being read, 0 for none.
    action_line: usize,
    ranges: usize,
    depth: usize,
    trees: Vec<Tree>,
}

type Parsed<T> = Result<T, String>;

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Ending {
    End,
    Else,
}

impl Ending {
    fn shown(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

/// A node, or the end of a list of them.
enum Item {
    Node(Node),
    Ending(Ending, usize),
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        self.pending.pop().unwrap_or_else(|| {
            let token = self.lexer.next_token();
            self.line = token.line;
            token
        })
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.pending.push(token.clone());
        token
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.of != Type::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.pending.push(token.clone());
        token
    }

    fn fail<T>(&self, message: &str) -> Parsed<T> {
        Err(format!(
            "template: {}:{}: {message}",
            self.source.name, self.line
        ))
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        if token.of == Type::Error {
            let mut extra = String::new();
            if self.action_line != 0 && self.action_line != token.line {
                extra = format!(
                    " in action started at {}:{}",
                    self.source.name, self.action_line
                );
                if token.text.ends_with(" action") {
                    extra = extra.replacen(" in action", "", 1);
                }
            }
            return self.fail(&format!("{}{extra}", token.text));
        }
        self.fail(&format!("unexpected {} in {context}", token.shown()))
    }

    fn expect(&mut self, of: Type, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.of == of {
            Ok(token)
        } else {
            self.unexpected(&token, context)
        }
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("max expression depth exceeded");
        }
        Ok(())
    }

    /// Adds a template, unless there is one of the name: the one that says something stays.
    fn add(&mut self, name: &str, nodes: Vec<Node>) -> Parsed<()> {
        let tree = Tree {
            name: Rc::from(name),
            source: Rc::clone(&self.source),
            nodes,
        };
        let Some(index) = self.trees.iter().position(|other| *other.name == *name) else {
            self.trees.push(tree);
            return Ok(());
        };
        if self.trees[index].is_empty() {
            self.trees[index] = tree;
        } else if !tree.is_empty() {
            let name = crate::quote::quote(name.as_bytes());
            return self.fail(&format!("template: multiple definition of template {name}"));
        }
        Ok(())
    }

    fn file(&mut self, name: &str) -> Parsed<()> {
        let mut nodes = Vec::new();
        loop {
            let token = self.peek();
            if token.of == Type::Eof {
                break;
            }
            if token.of == Type::LeftDelim {
                let delim = self.next();
                let word = self.next_non_space();
                if word.of == Type::Define {
                    self.definition()?;
                    continue;
                }
                self.pending.push(word);
                self.pending.push(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending, _) => {
                    return self.fail(&format!("unexpected {}", ending.shown()));
                }
            }
        }
        self.add(name, nodes)
    }

    fn unquoted(&self, token: &Token) -> Parsed<Vec<u8>> {
        match crate::quote::unquote(&token.text) {
            Some(bytes) => Ok(bytes),
            None => self.fail("invalid syntax"),
        }
    }

    /// The variables that a template of its own begins with, and those outside it.
    fn own_variables(&mut self) -> (Vec<Rc<str>>, usize) {
        let outer = std::mem::replace(&mut self.variables, vec![Rc::from("$")]);
        (outer, std::mem::take(&mut self.ranges))
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        if !matches!(token.of, Type::String | Type::RawString) {
            return self.unexpected(&token, CONTEXT);
        }
        let name = String::from_utf8_lossy(&self.unquoted(&token)?).into_owned();
        self.expect(Type::RightDelim, CONTEXT)?;
        let (outer, ranges) = self.own_variables();
        let (nodes, ending, _) = self.list()?;
        if ending != Ending::End {
            return self.fail(&format!("unexpected {} in {CONTEXT}", ending.shown()));
        }
        self.variables = outer;
        self.ranges = ranges;
        self.add(&name, nodes)
    }

    fn list(&mut self) -> Parsed<(Vec<Node>, Ending, usize)> {
        self.deeper()?;
        let mut nodes = Vec::new();
        while self.peek_non_space().of != Type::Eof {
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending, at) => {
                    self.depth -= 1;
                    return Ok((nodes, ending, at));
                }
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.of {
            Type::Text => Ok(Item::Node(Node {
                at: token.at,
                kind: Kind::Text(Rc::from(token.text)),
            })),
            Type::LeftDelim => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let node = match token.of {
            Type::Block => self.block()?,
            Type::Break | Type::Continue => self.jump(&token)?,
            Type::Else => {
                let peeked = self.peek_non_space();
                if matches!(peeked.of, Type::If | Type::With) {
                    return Ok(Item::Ending(Ending::Else, peeked.at));
                }
                let at = self.expect(Type::RightDelim, "else")?.at;
                return Ok(Item::Ending(Ending::Else, at));
            }
            Type::End => {
                let at = self.expect(Type::RightDelim, "end")?.at;
                return Ok(Item::Ending(Ending::End, at));
            }
            Type::If | Type::Range | Type::With => self.control(token.of)?,
            Type::Template => self.template()?,
            _ => {
                self.pending.push(token);
                let at = self.peek().at;
                let pipe = self.pipeline("command", Type::RightDelim)?;
                Node {
                    at,
                    kind: Kind::Action(pipe),
                }
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, token: &Token) -> Parsed<Node> {
        let (kind, name) = if token.of == Type::Break {
            (Kind::Break, "{{break}}")
        } else {
            (Kind::Continue, "{{continue}}")
        };
        let end = self.next_non_space();
        if end.of != Type::RightDelim {
            return self.unexpected(&end, name);
        }
        if self.ranges == 0 {
            return self.fail(&format!("{name} outside {{{{range}}}}"));
        }
        Ok(Node { at: token.at, kind })
    }

    fn control(&mut self, of: Type) -> Parsed<Node> {
        let context = match of {
            Type::If => "if",
            Type::Range => "range",
            _ => "with",
        };
        self.deeper()?;
        let mark = self.variables.len();
        let pipe = self.pipeline(context, Type::RightDelim)?;
        if of == Type::Range {
            self.ranges += 1;
        }
        let (list, ending, _) = self.list()?;
        if of == Type::Range {
            self.ranges -= 1;
        }
        let otherwise = match ending {
            Ending::End => None,
            Ending::Else if of != Type::Range && self.peek().of == of => {
                self.next();
                Some(vec![self.control(of)?])
            }
            Ending::Else => {
                let (nodes, ending, _) = self.list()?;
                if ending != Ending::End {
                    return self.fail(&format!("expected end; found {}", ending.shown()));
                }
                Some(nodes)
            }
        };
        self.variables.truncate(mark);
        self.depth -= 1;
        let at = pipe.at;
        let branch = Branch {
            pipe,
            list,
            otherwise,
        };
        let kind = match of {
            Type::If => Kind::If(branch),
            Type::Range => Kind::Range(branch),
            _ => Kind::With(branch),
        };
        Ok(Node { at, kind })
    }

    fn template_name(&mut self, context: &str) -> Parsed<(usize, String)> {
        let token = self.next_non_space();
        if !matches!(token.of, Type::String | Type::RawString) {
            return self.unexpected(&token, context);
        }
        let name = String::from_utf8_lossy(&self.unquoted(&token)?).into_owned();
        Ok((token.at, name))
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let (at, name) = self.template_name(CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Type::RightDelim)?;
        let (outer, ranges) = self.own_variables();
        let (nodes, ending, _) = self.list()?;
        if ending != Ending::End {
            return self.fail(&format!("unexpected {} in {CONTEXT}", ending.shown()));
        }
        self.variables = outer;
        self.ranges = ranges;
        self.add(&name, nodes)?;
        Ok(Node {
            at,
            kind: Kind::Template {
                name,
                pipe: Some(pipe),
            },
        })
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let (at, name) = self.template_name(CONTEXT)?;
        let token = self.next_non_space();
        let pipe = if token.of == Type::RightDelim {
            None
        } else {
            self.pending.push(token);
            Some(self.pipeline(CONTEXT, Type::RightDelim)?)
        };
        Ok(Node {
            at,
            kind: Kind::Template { name, pipe },
        })
    }

    fn pipeline(&mut self, context: &str, end: Type) -> Parsed<Pipe> {
        let mut pipe = Pipe {
            at: self.peek_non_space().at,
            assigns: false,
            variables: Vec::new(),
            commands: Vec::new(),
        };
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.next_non_space();
            match token.of {
                of if of == end => break,
                Type::Bool
                | Type::CharConstant
                | Type::Complex
                | Type::Dot
                | Type::Field
                | Type::Identifier
                | Type::Number
                | Type::Nil
                | Type::RawString
                | Type::String
                | Type::Variable
                | Type::LeftParen => {
                    self.pending.push(token);
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if pipe.commands.is_empty() {
            return self.fail(&format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            let is_constant = matches!(
                command.words.first().map(|word| &word.kind),
                Some(Kind::Bool(_) | Kind::Dot | Kind::Nil | Kind::Number(_) | Kind::Str { .. })
            );
            if is_constant {
                let stage = index + 1;
                return self.fail(&format!("non executable command in pipeline stage {stage}"));
            }
        }
        Ok(pipe)
    }

    /// The variables that a pipeline declares or sets.
    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.of != Type::Variable {
                return Ok(());
            }
            self.next_non_space();
            let after = self.peek();
            let next = self.peek_non_space();
            let name: Rc<str> = Rc::from(variable.text.as_str());
            match next.of {
                Type::Assign | Type::Declare => {
                    pipe.assigns = next.of == Type::Assign;
                    self.next_non_space();
                    pipe.variables.push(Rc::clone(&name));
                    self.variables.push(name);
                    return Ok(());
                }
                Type::Char if next.text == "," => {
                    self.next_non_space();
                    pipe.variables.push(Rc::clone(&name));
                    self.variables.push(name);
                    if context == "range" && pipe.variables.len() < 2 {
                        if matches!(
                            self.peek_non_space().of,
                            Type::Variable | Type::RightDelim | Type::RightParen
                        ) {
                            continue;
                        }
                        return self.fail("range can only initialize variables");
                    }
                    return self.fail(&format!("too many declarations in {context}"));
                }
                _ => {
                    // What follows was peeked; a space in front of it matters to the command.
                    if after.of == Type::Space {
                        self.pending.push(after);
                    }
                    self.pending.push(variable);
                    return Ok(());
                }
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut command = Command {
            at: self.peek_non_space().at,
            words: Vec::new(),
        };
        loop {
            self.peek_non_space();
            if let Some(word) = self.operand()? {
                command.words.push(word);
            }
            let token = self.next();
            match token.of {
                Type::Space => continue,
                Type::RightDelim | Type::RightParen => self.pending.push(token),
                Type::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if command.words.is_empty() {
            return self.fail("empty command");
        }
        Ok(command)
    }

    fn operand(&mut self) -> Parsed<Option<Node>> {
        let Some(node) = self.term()? else {
            return Ok(None);
        };
        let first = self.peek();
        if first.of != Type::Field {
            return Ok(Some(node));
        }
        let at = first.at;
        let mut fields: Vec<Rc<str>> = Vec::new();
        while self.peek().of == Type::Field {
            fields.push(Rc::from(&self.next().text[1..]));
        }
        let kind = match node.kind {
            Kind::Field(mut words) => {
                words.extend(fields);
                Kind::Field(words)
            }
            Kind::Variable(mut words) => {
                words.extend(fields);
                Kind::Variable(words)
            }
            Kind::Bool(_) | Kind::Str { .. } | Kind::Number(_) | Kind::Nil | Kind::Dot => {
                let shown = crate::quote::quote(node.kind.to_string().as_bytes());
                return self.fail(&format!("unexpected . after term {shown}"));
            }
            _ => Kind::Chain(Box::new(node), fields),
        };
        Ok(Some(Node { at, kind }))
    }

    fn term(&mut self) -> Parsed<Option<Node>> {
        let token = self.next_non_space();
        let split = |text: &str| text.split('.').map(Rc::from).collect::<Vec<Rc<str>>>();
        let kind = match token.of {
            Type::Identifier => {
                if !(self.is_function)(&token.text) {
                    let name = crate::quote::quote(token.text.as_bytes());
                    return self.fail(&format!("function {name} not defined"));
                }
                Kind::Identifier(Rc::from(token.text))
            }
            Type::Dot => Kind::Dot,
            Type::Nil => Kind::Nil,
            Type::Variable => {
                let words = split(&token.text);
                let is_known = words
                    .first()
                    .is_some_and(|name| self.variables.contains(name));
                if !is_known {
                    let name = crate::quote::quote(token.text.as_bytes());
                    return self.fail(&format!("undefined variable {name}"));
                }
                Kind::Variable(words)
            }
            Type::Field => Kind::Field(split(&token.text[1..])),
            Type::Bool => Kind::Bool(token.text == "true"),
            Type::CharConstant | Type::Complex | Type::Number => match number(&token) {
                Ok(number) => Kind::Number(number),
                Err(why) => return self.fail(&why),
            },
            Type::LeftParen => {
                self.deeper()?;
                let pipe = self.pipeline("parenthesized pipeline", Type::RightParen)?;
                self.depth -= 1;
                return Ok(Some(Node {
                    at: pipe.at,
                    kind: Kind::Pipe(pipe),
                }));
            }
            Type::String | Type::RawString => Kind::Str {
                value: Value::str(self.unquoted(&token)?),
                quoted: token.text,
            },
            _ => {
                self.pending.push(token);
                return Ok(None);
            }
        };
        Ok(Some(Node { at: token.at, kind }))
    }
}

/// The number that a constant is, in every kind that can hold it.
fn number(token: &Token) -> Result<Number, String> {
    let text = &token.text;
    let shown = || crate::quote::quote(text.as_bytes());
    let mut found = Number {
        text: text.clone(),
        ..Number::default()
    };
    if token.of == Type::CharConstant {
        let Some(c) = crate::quote::unquote_rune(text) else {
            return Err(format!("malformed character constant: {text}"));
        };
        let code = u32::from(c);
        found.int = Some(i64::from(code));
        found.uint = Some(u64::from(code));
        found.float = Some(f64::from(code));
        return Ok(found);
    }
    if token.of == Type::Complex || text.ends_with('i') {
        found.complex = true;
        return Ok(found);
    }
    found.uint = number::parse_uint(text, 0);
    found.int = number::parse_int(text, 0);
    if found.int == Some(0) {
        found.uint = Some(0);
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a constant is a float where one is wanted"
    )]
    match (found.int, found.uint) {
        (Some(int), _) => found.float = Some(int as f64),
        (None, Some(uint)) => found.float = Some(uint as f64),
        (None, None) => {
            if let Some(float) = number::parse_float(&text.replace('_', "")) {
                if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                    return Err(format!("integer overflow: {}", shown()));
                }
                found.float = Some(float);
                #[expect(clippy::cast_possible_truncation, reason = "checked by the way back")]
                let int = float as i64;
                #[expect(clippy::float_cmp, reason = "whether it is the same number")]
                if int as f64 == float {
                    found.int = Some(int);
                    found.uint = u64::try_from(int).ok();
                }
            }
        }
    }
    if found.int.is_none() && found.uint.is_none() && found.float.is_none() {
        return Err(format!("illegal number syntax: {}", shown()));
    }
    Ok(found)
}
