//! What stands between delimiters: branches, ranges, blocks and templates by name.

use super::{Ending, Item, Parsed, Parser};
use crate::template::lex::{Token, Type};
use crate::template::node::{Branch, Kind, Node};

impl Parser<'_> {
    pub(super) fn action(&mut self) -> Parsed<Item> {
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
}
