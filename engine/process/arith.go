package process

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arith evaluates $((…)).
func (e *expander) arith(x syntax.ArithmExpr) int64 {
	switch x := x.(type) {
	case *syntax.Word:
		s := strings.TrimSpace(e.word(x))
		for range 10 {
			if s == "" {
				return 0
			}
			if n, err := strconv.ParseInt(s, 0, 64); err == nil {
				return n
			}
			v, ok := e.lookup(s)
			if !ok {
				return 0
			}
			s = strings.TrimSpace(v)
		}
	case *syntax.ParenArithm:
		return e.arith(x.X)
	case *syntax.UnaryArithm:
		return e.unary(x)
	case *syntax.BinaryArithm:
		return e.binary(x)
	}
	return 0
}

func (e *expander) unary(x *syntax.UnaryArithm) int64 {
	v := e.arith(x.X)
	switch x.Op {
	case syntax.Minus:
		return -v
	case syntax.Not:
		return int64(btoi(v == 0))
	case syntax.BitNegation:
		return ^v
	case syntax.Inc, syntax.Dec:
		now := v + 1
		if x.Op == syntax.Dec {
			now = v - 1
		}
		if w, ok := x.X.(*syntax.Word); ok {
			e.vars[w.Lit()] = strconv.FormatInt(now, 10)
		}
		if x.Post {
			return v
		}
		return now
	}
	return v
}

func (e *expander) binary(x *syntax.BinaryArithm) int64 {
	if w, ok := x.X.(*syntax.Word); ok {
		op, assigns := map[syntax.BinAritOperator]syntax.BinAritOperator{
			syntax.Assgn: syntax.Assgn, syntax.AddAssgn: syntax.Add, syntax.SubAssgn: syntax.Sub, syntax.MulAssgn: syntax.Mul,
			syntax.QuoAssgn: syntax.Quo, syntax.RemAssgn: syntax.Rem,
		}[x.Op]
		if assigns {
			v := e.arith(x.Y)
			if op != syntax.Assgn {
				v = e.compute(op, e.arith(x.X), v)
			}
			e.vars[w.Lit()] = strconv.FormatInt(v, 10)
			return v
		}
	}
	a := e.arith(x.X)
	switch x.Op {
	case syntax.AndArit:
		return int64(btoi(a != 0 && e.arith(x.Y) != 0))
	case syntax.OrArit:
		return int64(btoi(a != 0 || e.arith(x.Y) != 0))
	case syntax.TernQuest:
		c, ok := x.Y.(*syntax.BinaryArithm)
		switch {
		case !ok:
			return 0
		case a != 0:
			return e.arith(c.X)
		}
		return e.arith(c.Y)
	}
	return e.compute(x.Op, a, e.arith(x.Y))
}

func (e *expander) compute(op syntax.BinAritOperator, a, b int64) int64 {
	truth := func(ok bool) int64 { return int64(btoi(ok)) }
	switch op {
	case syntax.Add:
		return a + b
	case syntax.Sub:
		return a - b
	case syntax.Mul:
		return a * b
	case syntax.Quo, syntax.Rem:
		switch {
		case b == 0:
			panic(badExpansion{"divide by zero"})
		case b == -1: // the smallest number has no negative
			return map[bool]int64{true: -a, false: 0}[op == syntax.Quo]
		case op == syntax.Quo:
			return a / b
		}
		return a % b
	case syntax.Eql:
		return truth(a == b)
	case syntax.Neq:
		return truth(a != b)
	case syntax.Lss:
		return truth(a < b)
	case syntax.Leq:
		return truth(a <= b)
	case syntax.Gtr:
		return truth(a > b)
	case syntax.Geq:
		return truth(a >= b)
	case syntax.And:
		return a & b
	case syntax.Or:
		return a | b
	case syntax.Xor:
		return a ^ b
	case syntax.Shl:
		return a << (uint64(b) & 63)
	case syntax.Shr:
		return a >> (uint64(b) & 63)
	case syntax.Comma:
		return b
	}
	return 0
}

// test evaluates [[ … ]].
func (e *expander) test(x syntax.TestExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		return e.word(x) != ""
	case *syntax.ParenTest:
		return e.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return !e.test(x.X)
		}
		w, _ := x.X.(*syntax.Word)
		ok, _ := e.m.condition(e.t, []string{x.Op.String(), e.word(w)})
		return ok
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			return e.test(x.X) && e.test(x.Y)
		case syntax.OrTest:
			return e.test(x.X) || e.test(x.Y)
		}
		a, _ := x.X.(*syntax.Word)
		b, _ := x.Y.(*syntax.Word)
		switch op := x.Op.String(); op {
		case "==", "=":
			return matches(e.patternOf(b), e.word(a))
		case "!=":
			return !matches(e.patternOf(b), e.word(a))
		default:
			ok, _ := e.m.condition(e.t, []string{e.word(a), op, e.word(b)})
			return ok
		}
	}
	return false
}
