//go:build !purego

#include "textflag.h"

DATA chars<>+0(SB)/4, $0x2072225c // backslash, quote, r, space
GLOBL chars<>(SB), RODATA|NOPTR, $4

// The characters other than quote and r that make a short escape sequence, each
// at the place that the low half of its code says: b t f, \ n /. The other
// places hold 0x80, which equals no byte that is looked up there.
DATA follow<>+0(SB)/8, $0x8066807480628080
DATA follow<>+8(SB)/8, $0x2f6e805c80808080
GLOBL follow<>(SB), RODATA|NOPTR, $16

// Malformed UTF-8 shows in two neighbouring bytes. The high half of the first,
// its low half and the high half of the second each leave some mistakes possible,
// and one that all three leave has been made:
//
//	0x01  lead byte, then no continuation byte
//	0x02  ASCII, then a continuation byte
//	0x04  a form of two bytes that is longer than needed: C0, C1
//	0x08  a form of three bytes that is longer than needed: E0, then less than A0
//	0x10  a surrogate: ED, then A0 or more
//	0x20  a form of four bytes that is longer than needed: F0, then less than 90; or F5 and above, then the same
//	0x40  more than U+10FFFF: F4 and above, then 90 or more
//	0x80  two continuation bytes: a mistake only where no third or fourth byte is due
DATA high1<>+0(SB)/8, $0x0202020202020202
DATA high1<>+8(SB)/8, $0x6119010580808080
GLOBL high1<>(SB), RODATA|NOPTR, $16
DATA low1<>+0(SB)/8, $0xE3E3E3C3838387AF
DATA low1<>+8(SB)/8, $0xE3E3F3E3E3E3E3E3
GLOBL low1<>(SB), RODATA|NOPTR, $16
DATA high2<>+0(SB)/8, $0x0101010101010101
DATA high2<>+8(SB)/8, $0x01010101D6D6CEAE
GLOBL high2<>(SB), RODATA|NOPTR, $16

DATA half<>+0(SB)/4, $0x0F0F0F0F
GLOBL half<>(SB), RODATA|NOPTR, $4
DATA due<>+0(SB)/4, $0x60606060 // brings the lead bytes of three bytes, and no less, to 0x80
DATA due<>+4(SB)/4, $0x70707070 // and those of four
DATA due<>+8(SB)/4, $0x80808080 // which is what is left of them
GLOBL due<>(SB), RODATA|NOPTR, $12

// The greatest bytes that can end a block without a character being cut.
DATA whole<>+0(SB)/8, $0xFFFFFFFFFFFFFFFF
DATA whole<>+8(SB)/8, $0xBFDFEFFFFFFFFFFF
GLOBL whole<>(SB), RODATA|NOPTR, $16

// What must be added to a digit and to a letter a-f for the last of them to
// become 0x7F, the greatest signed byte, and what they are greater than then.
DATA hexes<>+0(SB)/4, $0x46464646
DATA hexes<>+4(SB)/4, $0x75757575
DATA hexes<>+8(SB)/4, $0x19191919
DATA hexes<>+12(SB)/4, $0x79797979
DATA hexes<>+16(SB)/4, $0x20202020 // to lower case
DATA hexes<>+20(SB)/4, $0x75757575 // u
GLOBL hexes<>(SB), RODATA|NOPTR, $24

// CLASSIFY finds three kinds of bytes: backslashes; those that end the stride
// unless they are escaped, which are quotes and what is, taken as signed, less
// than a space; and those to which being escaped makes no difference, because
// they are right both times, like n, or wrong both times, like a control
// character.
#define CLASSIFY(bytes, backslash, stop, same) \
	VPCMPEQB bytes, Y0, backslash \
	VPCMPGTB bytes, Y3, Y15       \
	VPCMPEQB bytes, Y1, stop      \
	VPOR     Y15, stop, stop      \
	VPSHUFB  bytes, Y4, same      \
	VPCMPEQB bytes, same, same    \
	VPOR     Y15, same, same      \
	VPCMPEQB bytes, Y2, Y15       \
	VPOR     Y15, same, same

// UTF8 collects in Y15 the mistakes in bytes; before begins 16 bytes before them.
#define UTF8(bytes, before) \
	VPALIGNR     $15, before, bytes, Y8 \
	VPSRLW       $4, Y8, Y9             \
	VPAND        Y11, Y8, Y8            \
	VPAND        Y11, Y9, Y9            \
	VPSRLW       $4, bytes, Y10         \
	VPAND        Y11, Y10, Y10          \
	VPSHUFB      Y9, Y12, Y9            \
	VPSHUFB      Y8, Y13, Y8            \
	VPSHUFB      Y10, Y14, Y10          \
	VPAND        Y8, Y9, Y9             \
	VPAND        Y9, Y10, Y10           \
	VPBROADCASTD due<>+0(SB), Y9        \
	VPALIGNR     $14, before, bytes, Y8 \
	VPSUBUSB     Y9, Y8, Y8             \
	VPBROADCASTD due<>+4(SB), Y9        \
	VPALIGNR     $13, before, bytes, before \
	VPSUBUSB     Y9, before, before     \
	VPOR         Y8, before, before     \
	VPBROADCASTD due<>+8(SB), Y9        \
	VPAND        Y9, before, before     \
	VPXOR        before, Y10, Y10       \
	VPOR         Y10, Y15, Y15

// HEX finds the hexadecimal digits.
#define HEX(bytes, found) \
	VPADDB   Y11, bytes, Y10 \
	VPCMPGTB Y12, Y10, Y10   \
	VPOR     Y15, bytes, found \
	VPADDB   Y13, found, found \
	VPCMPGTB Y14, found, found \
	VPOR     Y10, found, found

// MASK makes 64 bits of 64 bytes.
#define MASK(low, high, mask) \
	VPMOVMSKB low, mask \
	VPMOVMSKB high, DX  \
	SHLQ      $32, DX   \
	ORQ       DX, mask

// func strideAVX2(p *byte, n int) int
TEXT ·strideAVX2(SB), NOSPLIT, $0-24
	MOVQ           p+0(FP), SI
	MOVQ           n+8(FP), DI
	LEAQ           -64(SI)(DI*1), DI       // the last place for a block
	VPBROADCASTB   chars<>+0(SB), Y0
	VPBROADCASTB   chars<>+1(SB), Y1
	VPBROADCASTB   chars<>+2(SB), Y2
	VPBROADCASTB   chars<>+3(SB), Y3
	VBROADCASTI128 follow<>(SB), Y4
	MOVQ           $0xAAAAAAAAAAAAAAAA, R8 // the odd bits

block:
	VMOVDQU (SI), Y5
	VMOVDQU 32(SI), Y6
	CLASSIFY(Y5, Y7, Y8, Y9)
	CLASSIFY(Y6, Y10, Y11, Y12)
	MASK(Y7, Y10, AX) // backslashes
	MASK(Y8, Y11, BX) // stop
	MASK(Y9, Y12, CX) // same

	// In a run of backslashes every second one escapes, from the first. The
	// subtraction leaves a run that begins at an even bit as it is, and of one
	// at an odd bit only the bit after it. With the odd bits flipped, both have
	// become the backslashes that escape, and the byte after an odd run.
	LEAQ (AX)(AX*1), DX
	ORQ  R8, DX
	SUBQ AX, DX
	XORQ R8, DX
	MOVQ DX, R9
	ANDQ AX, R9 // backslashes that escape
	XORQ DX, AX // bytes that are escaped

	ANDQ  AX, CX
	XORQ  AX, CX
	XORQ  BX, CX // wrong: stop, except where escaped and not same
	JNZ   found
	ADDQ  $64, SI
	TESTQ R9, R9
	JPL   next
	DECQ  SI     // the last byte escapes the first of the next block
next:
	CMPQ  SI, DI
	JLS   block
	JMP   done

	// Something is wrong, or only not ASCII, or a \u. What turns out to be right
	// is taken out of CX. R12 gets the places where something begins that the
	// block cuts; the next block begins with the first of them, so that nothing
	// has to be carried from one to the other.
found:
	XORL  R12, R12
	TESTQ R9, R9
	JPL   beyond
	BTSQ  $63, R12

beyond:
	MASK(Y5, Y6, R10) // beyond ASCII
	TESTQ R10, R10
	JZ    escapes

	VBROADCASTI128 high1<>(SB), Y12
	VBROADCASTI128 low1<>(SB), Y13
	VBROADCASTI128 high2<>(SB), Y14
	VPBROADCASTD   half<>(SB), Y11
	VPXOR          Y15, Y15, Y15
	VINSERTI128    $1, (SI), Y15, Y7 // a block begins with a character: zeros go before it
	UTF8(Y5, Y7)
	VMOVDQU        16(SI), Y7
	UTF8(Y6, Y7)
	VPTEST         Y15, Y15
	JNZ            stop

	ANDNQ     R10, AX, R10
	XORQ      R10, CX // right, except where escaped
	VMOVDQU   48(SI), X7
	VPSUBUSB  whole<>(SB), X7, X7
	VPXOR     X8, X8, X8
	VPCMPGTB  X8, X7, X7
	VPMOVMSKB X7, DX
	SHLQ      $48, DX
	ORQ       DX, R12

escapes:
	TESTQ CX, AX
	JZ    judge

	VPBROADCASTD hexes<>+0(SB), Y11
	VPBROADCASTD hexes<>+4(SB), Y12
	VPBROADCASTD hexes<>+8(SB), Y13
	VPBROADCASTD hexes<>+12(SB), Y14
	VPBROADCASTD hexes<>+16(SB), Y15
	HEX(Y5, Y7)
	HEX(Y6, Y8)
	MASK(Y7, Y8, R10)
	VPBROADCASTD hexes<>+20(SB), Y9
	VPCMPEQB     Y9, Y5, Y7
	VPCMPEQB     Y9, Y6, Y8
	MASK(Y7, Y8, R11)

	ANDQ AX, R11 // u, escaped
	MOVQ R10, DX
	SHRQ $1, DX
	ANDQ DX, R10 // two digits begin here
	MOVQ R10, DX
	SHRQ $2, DX
	ANDQ DX, R10 // four
	SHRQ $1, R10
	ANDQ R11, R10
	XORQ R10, CX // right
	SHRQ $60, R11
	SHLQ $59, R11
	ORQ  R11, R12 // the backslash of a u that has no place for four digits

judge:
	BLSMSKQ R12, DX
	TESTQ   DX, CX
	JNZ     stop
	TZCNTQ  R12, R12
	ADDQ    R12, SI
	JMP     next

stop:
	TZCNTQ CX, CX
	ADDQ CX, SI
	SHRQ CX, AX
	ANDQ $1, AX
	SUBQ AX, SI // escaped: back to the backslash

done:
	SUBQ p+0(FP), SI
	MOVQ SI, ret+16(FP)
	VZEROUPPER
	RET
