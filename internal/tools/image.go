package tools

import (
	"context"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Painter makes an image, of at most so many bytes of base64.
type Painter func(ctx context.Context, prompt llm.Raw, wish *llm.PictureWish, limit int) (*llm.Media, error)

// painter makes images within one call of the gateway.
type painter struct {
	tools *Tools
	wish  *llm.PictureWish
	paint Painter
	left  int // bytes of base64 that the answer may still hold
}

// maxPictures bounds the images of one answer, in bytes of base64.
const maxPictures = 64 << 20

var imageFunction = llm.Tool{
	Name:   "image_generation",
	Desc:   llm.Quote("Makes an image and shows it to the user."),
	Schema: promptArgument,
}

func (p *painter) function(notes *llm.Notes) llm.Tool {
	for _, name := range p.wish.Others {
		notes.Drop(name)
	}
	return imageFunction
}

// What the model is told of images, which it does not see itself.
const (
	painted    = "The image was made and is shown to the user."
	notPainted = "The image could not be made: "
)

func (p *painter) run(ctx context.Context, call *dialect.HostedCall) *dialect.HostedResult {
	told := asked(call)
	if told.Prompt == nil {
		return failed(told, notPainted+"There is no prompt.")
	}
	ctx, cancel := context.WithTimeout(ctx, p.tools.config.Images.Timeout)
	defer cancel()
	image, err := p.paint(ctx, told.Prompt, p.wish, p.left)
	switch {
	case err != nil && ctx.Err() != nil:
		return failed(told, notPainted+"It took too long.")
	case err != nil:
		return failed(told, notPainted+clip(llm.AsError(err).Message))
	}
	p.left -= len(image.Data)
	told.Image = image
	return &dialect.HostedResult{Call: told, Text: llm.Quote(painted)}
}

// past is an image of an earlier turn.
func (p *painter) past(item *llm.ServerCall) (args, text llm.Raw) {
	text = llm.Quote(painted)
	if item.Failed {
		text = llm.Quote("The image could not be made.")
	}
	return argument("prompt", item.Prompt), text
}

func (p *painter) close() {}
